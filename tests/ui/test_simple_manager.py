"""The three rights with Airflow's simple auth manager, in a process with settings of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pipeline.harness import ROOT

ASK = """
import json
from airflow.utils.db import initdb
initdb()
from airflow.api_fastapi.app import init_auth_manager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from dataflow_ui.rights import RIGHTS, may, may_act_on_all
init_auth_manager()
found = {}
for role in ("VIEWER", "USER", "ADMIN"):
    user = SimpleAuthManagerUser(username=role, role=role)
    found[role] = [*(may(user, right, "tiny__full") for right in RIGHTS), may_act_on_all(user)]
print(json.dumps(found))
"""


@pytest.mark.airflow
@pytest.mark.timeout(280)
def test_viewers_read_users_do_all_three(tmp_path: Path) -> None:
    env = {k: v for k, v in os.environ.items() if not k.startswith("AIRFLOW")} | {
        "AIRFLOW_HOME": str(tmp_path),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{tmp_path / 'airflow.db'}",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "PYTHONPATH": f"{ROOT}:{ROOT / 'plugins'}",
    }
    done = subprocess.run(
        [sys.executable, "-c", ASK], env=env, cwd=ROOT, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.strip().splitlines()[-1]) == {
        "VIEWER": [True, False, False, False],
        "USER": [True, True, True, True],
        "ADMIN": [True, True, True, True],
    }
