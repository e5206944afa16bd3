"""What the report says, in English and Chinese. Facts in braces are filled in, escaped."""

from __future__ import annotations

TEXTS: dict[str, tuple[str, str]] = {
    # outcome
    "title": ("DataFlow report", "DataFlow 报告"),
    "outcome": (
        "{records} records came in; {documents} documents with {tokens} tokens went out"
        " ({share} of the records).",
        "输入 {records} 条记录，产出 {documents} 篇文档（占记录的 {share}），共 {tokens} token。",
    ),
    "outcome_kept": (
        "{records} records came in; {documents} documents with {tokens} tokens have passed all steps so far.",
        "输入 {records} 条记录；目前有 {documents} 篇文档通过所有步骤，共 {tokens} token。",
    ),
    "outcome_empty": (
        "The run had no records: its sources were empty. That is no error.",
        "本次运行没有记录：数据源为空。这不是错误。",
    ),
    "outcome_compacted": (
        "It holds {documents} documents with {tokens} tokens in {shards} shards: the same rows in the same"
        " order as {version}, put together from {count} versions.",
        "含 {documents} 篇文档，共 {tokens} token，分为 {shards} 个分片：由 {count} 个版本合并而成，"
        "行及其顺序与 {version} 相同。",
    ),
    "dead_sentence": (
        "{dead} could not be processed and are kept as dead letters.",
        "{dead} 条无法处理，已存为死信。",
    ),
    "no_dead": ("None failed.", "没有失败的记录。"),
    "estimated": (
        "Tokens are estimated: the job names no tokenizer.",
        "token 数为估算值：作业未指定分词器。",
    ),
    "run": ("run", "运行"),
    "version": ("version", "版本"),
    "mode": ("mode", "模式"),
    "data_date": ("data of", "数据日期"),
    "made_at": ("made", "生成于"),
    "state": ("state", "状态"),
    "records_in": ("records in", "输入记录"),
    "documents_out": ("documents out", "产出文档"),
    "documents_kept": ("documents kept so far", "目前保留文档"),
    "tokens_out": ("tokens", "token"),
    "dead": ("dead letters", "死信"),
    "duration": ("duration", "用时"),
    "worked": ("time of all tasks together", "全部任务用时合计"),
    "rate": ("records per second and worker", "每工作进程每秒记录数"),
    "current": ("current version", "当前版本"),
    "not_current": ("NOT current.", "未生效。"),
    "stands_increment": (
        "an increment: one interval's documents; the next full run contains them",
        "增量版本：仅含该区间的文档，下次全量运行将包含它们",
    ),
    "stands_published": ("not the current version any more", "已不是当前版本"),
    "stands_rejected": ("rejected by a person", "已被人工否决"),
    "stands_removed": ("its shards were removed after their time of retention", "分片已按保留期限清除"),
    "waits": ("A person must look first:", "需人工查看："),
    "not_promoted": (
        "The run was not to make its version current (it was run with --set).",
        "本次运行不使版本生效（使用了 --set）。",
    ),
    "then_approve": ("To make it current:", "使其生效："),
    # sections
    "s_alarms": ("Look at this first", "请先看这里"),
    "s_compacted": ("Put together from", "由以下版本合并"),
    "s_funnel": ("What each layer removed", "各层去除情况"),
    "s_rules": ("Discards by rule", "各规则丢弃量"),
    "s_sources": ("Losses by source", "各来源损失"),
    "s_dedup": ("Duplicates", "去重"),
    "s_shares": ("What the data is made of", "数据构成"),
    "s_lengths": ("Lengths and quality", "长度与质量"),
    "s_plan": ("Mixing plan", "配比方案"),
    "s_left_out": ("Left out when listing", "列出时略过的条目"),
    "s_repaired": ("Repaired while parsing", "解析时的修复"),
    "s_failures": ("Failures in parsing", "解析失败"),
    "s_drift": ("Moves against the last full version", "与上一完整版本的偏移"),
    "s_throughput": ("Throughput", "吞吐"),
    "s_settings": ("Parameters", "参数"),
    "s_versions": ("Versions of steps, rules, parsers and models", "步骤、规则、解析器与模型版本"),
    "s_next": ("How to go on", "下一步"),
    # explanations
    "x_compacted": (
        "The lowest first. Documents that later ones replaced are left out. The reports of these versions"
        " tell what rules and duplicates removed, what failed, and how long the texts are.",
        "最下层的版本在前。被后续版本替换的文档已略去。规则与去重去除了什么、哪些失败以及文本长度，见这些版本各自的报告。",
    ),
    "x_funnel": (
        "Every input record is in exactly one place: kept, removed or dead. One record may give several"
        " documents.",
        "每条输入记录只有一个去向：保留、去除或死信。一条记录可能产生多篇文档。",
    ),
    "x_rules": (
        "The first failing rule of each document. Look at what a rule removes before trusting it: a few per"
        " cent of junk is bearable, a wrongly removed domain is gone for good.",
        "按每篇文档首个未通过的规则统计。信任一条规则之前，先抽样看它去掉了什么：少量垃圾可以容忍，误删的领域无法挽回。",
    ),
    "x_exported": ("Of the exported documents.", "统计对象：已导出的文档。"),
    "x_kept": (
        "Of the documents kept so far: nothing is exported yet.",
        "统计对象：目前保留的文档（尚未导出）。",
    ),
    "x_sources": (
        "Share of a source's documents lost in each step, with the rule that took most. A source that loses"
        " nearly all in one step has changed, or meets a rule that does not fit it.",
        "每个来源在各步骤损失的文档占比，以及去除最多的规则。某来源在一步中几乎全部损失，"
        "说明来源变了或规则不适合它。",
    ),
    "x_curve": (
        "{bands} bands of {rows} rows: a pair is compared with this probability, which rises most steeply"
        " near a Jaccard similarity of {threshold} between their shingles. Compared pairs count as copies"
        " from an edit similarity of {min} on.",
        "{bands} 个分段 × {rows} 行：一对文档被比较的概率，"
        "在 shingle 的 Jaccard 相似度约 {threshold} 处上升最快。编辑相似度达到 {min} 才算重复。",
    ),
    "x_looser": (
        "Duplicates left over? More bands of fewer rows find more: {bands} × {rows} (threshold {threshold}),"
        " at more candidates to verify.",
        "仍有重复？分段更多、行更少会找出更多：{bands} × {rows}（阈值 {threshold}），但需验证的候选更多。",
    ),
    "x_stricter": (
        "Too much removed? See which share is near, then take more rows per band: {bands} × {rows} (threshold"
        " {threshold}), or raise dedup.verify.min_similarity.",
        "去掉太多？先看近似重复的占比，再增加每分段行数：{bands} × {rows}（阈值 {threshold}），"
        "或调高 dedup.verify.min_similarity。",
    ),
    "x_plan": (
        "Counted in tokens of one pass, not in file sizes.",
        "按单轮 token 数计，而非文件大小。",
    ),
    "x_left_out": (
        "Entries of the sources that were seen but are no input of this run. If something is missing from the"
        " data, look here first.",
        "在数据源中见到、但未作为本次输入的条目。若数据里缺了什么，请先看这里。",
    ),
    "x_repaired": (
        "Records that were kept but had to be mended; the share is of the records kept. A repair that is"
        " suddenly frequent means that a source has changed.",
        "已保留但经过修复的记录；占比以保留的记录为准。某种修复突然增多，通常是来源变了。",
    ),
    "x_hosts": (
        "Records that could not be parsed are dead. A host or type that suddenly fails has changed its"
        " pages.",
        "无法解析的记录成为死信。某个主机或类型突然失败，通常是页面模板变了。",
    ),
    "x_refused": (
        "Besides, {count} of {of} records were parsed and refused by {rule}: see the discards. They name no"
        " parser, so only the table of hosts counts them.",
        "另有 {of} 条记录中的 {count} 条在解析后被 {rule} 拒绝：见丢弃量。它们不带解析器名，仅计入主机表。",
    ),
    "x_bounds": (
        "Below each rule: what it measures, and the key of the job file that moves its bounds.",
        "规则下方：它衡量什么，以及作业文件中调整其界限的键。",
    ),
    "x_next": (
        "In the folder where .dataflow lies, or with --home FOLDER.",
        "在 .dataflow 所在的文件夹中运行，或加 --home FOLDER。",
    ),
    "x_throughput": (
        "Times and rates are those of the tasks themselves, added up: so much does one worker do. Tasks that"
        " an earlier run had done are skipped; the time they took then is counted.",
        "用时与速率取自各任务自身并累加，即单个工作进程的速度。此前运行已完成的任务会跳过，其当时用时仍计入。",
    ),
    "x_settings": ("Marked rows differ from the defaults.", "标记的行与默认值不同。"),
    "x_drift": (
        "Moves beyond a limit hold the version back until a person approves it.",
        "超出阈值的偏移需人工批准后版本才会生效。",
    ),
    # columns
    "layer": ("layer", "层"),
    "step": ("step", "步骤"),
    "in": ("in", "输入"),
    "kept": ("kept", "保留"),
    "removed": ("removed", "去除"),
    "rejected": ("rejected", "拒绝"),
    "dead_short": ("dead", "死信"),
    "out": ("out", "输出"),
    "rule": ("rule", "规则"),
    "gate": ("gate", "关卡"),
    "share": ("share", "占比"),
    "bounds": ("bounds", "界限"),
    "documents": ("documents", "文档"),
    "own_documents": ("documents of its own", "自身文档"),
    "shards": ("shards", "分片"),
    "tokens": ("tokens", "token"),
    "source": ("source", "来源"),
    "reason": ("reason", "原因"),
    "entries": ("entries", "条目"),
    "repair": ("repair", "修复"),
    "records": ("records", "记录"),
    "lost": ("lost", "损失"),
    "top_rule": ("top rule", "主要规则"),
    "domain": ("domain", "领域"),
    "language": ("language", "语言"),
    "quality_level": ("quality level", "质量等级"),
    "kind": ("kind of text", "文本类型"),
    "target": ("target", "目标"),
    "supply": ("supply", "可用"),
    "drawn": ("drawn", "已取"),
    "shortage": ("short by", "缺口"),
    "ratio": ("asked", "设定占比"),
    "actual": ("given", "实际占比"),
    "all": ("everything", "全部"),
    "epochs": ("epochs", "轮次"),
    "parser": ("parser", "解析器"),
    "host": ("host", "主机"),
    "media_type": ("media type", "媒体类型"),
    "no_text": ("no text", "无正文"),
    "of": ("of", "总数"),
    "error": ("error", "错误"),
    "count": ("count", "数量"),
    "example": ("example", "示例"),
    "before": ("before", "之前"),
    "now": ("now", "现在"),
    "move": ("move", "偏移"),
    "what": ("what", "项目"),
    "key": ("key", "键"),
    "value": ("value", "值"),
    "name": ("name", "名称"),
    "seconds": ("task seconds", "任务秒数"),
    "cpu_seconds": ("CPU seconds", "CPU 秒"),
    "docs_s": ("records/s", "记录/秒"),
    "mb_s": ("MB/s", "MB/秒"),
    "tokens_s": ("tokens/s", "token/秒"),
    "tasks": ("tasks (skipped)", "任务（跳过）"),
    "numbers": ("Numbers", "数据表"),
    "show_all": ("Show all {count}", "显示全部 {count} 项"),
    "others": ("all others", "其他合计"),
    "unknown": ("(none)", "（无）"),
    "from_to": ("from – below", "区间"),
    "distance": ("length distribution", "长度分布"),
    "characters": ("characters", "字符"),
    "chars": ("characters", "字符"),
    "steps": ("step", "步骤"),
    "rules": ("rule", "规则"),
    "parsers": ("parser", "解析器"),
    "models": ("model", "模型"),
    # repairs
    "m_html": ("broken markup was closed", "补全损坏的 HTML 标记"),
    "m_fence": ("an open code fence was closed", "补全未闭合的代码围栏"),
    "m_surrogate": ("lone surrogates became U+FFFD", "孤立代理字符替换为 U+FFFD"),
    "m_nul": ("NUL characters were removed", "移除 NUL 字符"),
    "m_nan": ("NaN or infinity in the metadata became null", "元数据中的 NaN 或无穷大改为 null"),
    "m_split": ("a text that was too long was split", "过长文本已拆分"),
    "m_truncated": ("a text that was too long was cut", "过长文本已截断"),
    # left out
    "o_hidden": ("hidden by its name", "隐藏文件或文件夹"),
    "o_not_included": ("not named by include", "不在 include 之列"),
    "o_excluded": ("named by exclude", "被 exclude 排除"),
    "o_symlink": ("a symbolic link", "符号链接"),
    "o_symlink_broken": ("a link to nothing", "失效的链接"),
    "o_symlink_folder": ("a link to a folder", "指向文件夹的链接"),
    "o_symlink_outside": ("a link out of the source", "指向来源之外的链接"),
    "o_special": ("no regular file", "不是普通文件"),
    "o_unknown_type": ("of a type that is not read", "不支持的文件类型"),
    "o_listed_twice": ("listed twice", "重复列出"),
    "o_submodule": ("a submodule", "子模块"),
    "o_deleted_in_tree": ("deleted in the working tree", "工作区中已删除"),
    "o_vendored": ("third-party or generated code", "第三方或生成的代码"),
    # layers
    "parse": ("parse", "解析"),
    "filter": ("filter", "过滤"),
    "dedup": ("dedup", "去重"),
    "score": ("score", "打分"),
    "mix": ("mix", "配比"),
    "export": ("export", "导出"),
    # steps
    "step_ingest": ("ingest", "采集"),
    "step_discover": ("discover", "发现"),
    "step_fetch": ("fetch", "读取"),
    "step_parse": ("parse", "解析"),
    "step_filter": ("filter", "过滤"),
    "step_dedup": ("dedup", "去重"),
    "step_sign": ("sign", "签名"),
    "step_supersede": ("supersede", "替换旧文档"),
    "step_exact": ("exact", "精确去重"),
    "step_match": ("match", "匹配"),
    "step_gather": ("gather", "汇集"),
    "step_recall": ("recall", "取回旧文本"),
    "step_verify": ("verify", "核对"),
    "step_unite": ("unite", "合并"),
    "step_collect": ("collect", "取待判文本"),
    "step_confirm": ("confirm", "去重判定"),
    "step_score": ("score", "评分"),
    "step_label": ("label", "标注"),
    "step_mix": ("mix", "配比"),
    "step_plan": ("plan", "配比方案"),
    "step_scatter": ("scatter", "分发"),
    "step_export": ("export", "导出"),
    "step_publish": ("publish", "发布"),
    # kinds of text
    "k_prose": ("prose", "普通文本"),
    "k_code": ("code", "代码"),
    "k_table": ("table", "表格"),
    "k_dialogue": ("dialogue", "对话"),
    # charts
    "c_exact": ("exact copies", "完全重复"),
    "c_near": ("near copies", "近似重复"),
    "c_unique": ("unique", "唯一"),
    "c_groups": ("Groups by size", "重复组大小"),
    "c_similarity": ("Near copies by similarity", "近似重复的相似度"),
    "c_curve": ("Chance to be compared", "被比较的概率"),
    "c_chars": ("Documents by characters", "文档字符数分布"),
    "c_tokens": ("Documents by tokens", "文档 token 数分布"),
    "c_scores": ("Documents by quality score", "文档质量分分布"),
    "c_share": ("Duplicates among documents", "重复占比"),
    "jaccard": ("Jaccard similarity", "Jaccard 相似度"),
    "probability": ("probability", "概率"),
    "group_size": ("documents in the group", "组内文档数"),
    "edit_similarity": ("edit similarity", "编辑相似度"),
    # nothing
    "nothing": ("Nothing to show.", "没有内容。"),
    "none_rules": ("No rule removed anything.", "没有规则去除任何文档。"),
    "none_dups": ("No duplicates.", "没有重复。"),
    "none_failed": ("Everything parsed.", "全部解析成功。"),
    "not_scored": ("No quality model was used: documents are not scored.", "未使用质量模型：文档未打分。"),
    # alarms
    "a_source_loss": (
        "Source {source} lost {share} of its documents in {step} ({lost} of {documents_in}), most to {rule}"
        " ({rule_hits}). Has the source changed, or the rule?",
        "来源 {source} 在 {step} 步骤损失了 {share} 的文档（{documents_in} 中的 {lost}），"
        "主要因 {rule}（{rule_hits}）。是来源变了，还是规则变了？",
    ),
    "a_near_high": (
        "Near copies are {share} of what dedup takes in, above {usual}. Look at some, then take more rows per"
        " band.",
        "近似重复占去重输入的 {share}，高于 {usual}。先抽样查看，再增加每分段行数。",
    ),
    "a_near_low": (
        "Near copies are only {share} of what dedup takes in, below {usual}. Are shingles too long?",
        "近似重复仅占去重输入的 {share}，低于 {usual}。shingle 是否过长？",
    ),
    "a_buckets_split": (
        "{count} buckets of like documents were over their cap and were split by a finer key: many documents"
        " share a template. Copies across the parts may be left; look at the largest groups.",
        "{count} 个相似桶超过上限，已按更细的键拆分：大量文档共用模板。"
        "拆分后的部分之间可能仍有重复，请查看最大的组。",
    ),
    "a_leaders_capped": (
        "{count} documents were not compared with all leaders of their bucket (dedup.verify.max_leaders):"
        " copies among them may be left.",
        "{count} 篇文档未与桶内全部代表比较（dedup.verify.max_leaders）：其中可能仍有重复。",
    ),
    "a_filters_resized": (
        "{count} filters of the index hold more than their share of dedup.global_bloom.capacity, and were"
        " made larger: raise it.",
        "{count} 个索引过滤器超出 dedup.global_bloom.capacity 中各自的份额，已自动加大：请调高该值。",
    ),
    "a_dead_share": (
        "{dead} of {records} records are dead ({share}), above run.max_dead_share = {limit}: the version does"
        " not become current by itself.",
        "{records} 条记录中有 {dead} 条死信（{share}），高于 run.max_dead_share = {limit}："
        "版本不会自动生效。",
    ),
    "a_shortage": (
        "Domain {domain} is short of {short} tokens: {asked} asked for, {supply} there, {given} given. Add"
        " sources, allow repetition or lower its ratio.",
        "领域 {domain} 缺 {short} token：要求 {asked}，现有 {supply}，给出 {given}。"
        "请增加来源、允许重复或降低比例。",
    ),
    # next
    "n_audit": ("See what a rule removed, with the texts", "查看某规则去掉了什么（含正文）"),
    "n_lineage": ("Trace one document", "追踪一篇文档"),
    "n_whatif": (
        "Ask what another bound would keep and refuse; nothing runs",
        "询问另一界限会多留、多去哪些文档（不运行）",
    ),
    "n_set": (
        "Try another bound: only the steps behind it run again, and the version does not become current",
        "试用另一界限：仅重跑受影响的步骤，且新版本不会自动生效",
    ),
    "n_dead": ("Look at the dead letters, then try them again", "查看死信并重试"),
    "n_report": ("Show this report again", "再次显示本报告"),
    "n_versions": ("See all versions, and this one's numbers", "查看全部版本及本版本的数字"),
    "n_verify": ("Check the version's files", "校验版本文件"),
    "n_doctor": ("Check this machine", "检查本机环境"),
    "n_approve": ("Let the version become current", "批准版本生效"),
}
"""Key -> (English, Chinese)."""
