"""The report's style sheet and its one small script (the language switch)."""

from __future__ import annotations

CSS = """
:root{color-scheme:light dark;--bg:#f5f6f8;--card:#fff;--ink:#1a222d;--muted:#5c6878;--line:#e2e6eb;
--kept:#0d8a86;--removed:#dd9a2b;--dead:#c63d49;--fill:#3a67c8;--soft:#e7edf9;--warn:#fff6e3;
--warnline:#e2a93c;
--head:#eef1f5}
@media (prefers-color-scheme:dark){:root{--bg:#0f141a;--card:#18202a;--ink:#e4e9f0;--muted:#98a5b5;
--line:#2b3542;--kept:#38b2ac;--removed:#e0b050;--dead:#ee6b75;--fill:#7fa2ee;--soft:#202c42;--warn:#2b2412;
--warnline:#a97f2a;--head:#202a36}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,
"Noto Sans","PingFang SC","Microsoft YaHei","Noto Sans CJK SC",sans-serif}
.page{max-width:1160px;margin:0 auto;padding:28px 24px 60px}
h1{font-size:26px;line-height:1.25;margin:0 0 6px;overflow-wrap:anywhere}
h2{font-size:19px;margin:0 0 4px}
h3{font-size:15px;margin:0 0 6px}
p{margin:4px 0 12px}
.muted{color:var(--muted)}
.lead{font-size:17px;max-width:860px;margin:8px 0}
.top{display:flex;justify-content:space-between;gap:20px;align-items:flex-start}
.switch{display:flex;border:1px solid var(--line);border-radius:8px;overflow:hidden;flex:none}
.switch button{font:inherit;font-size:13px;border:0;background:var(--card);color:var(--muted);
padding:5px 12px;cursor:pointer}
.switch button[aria-pressed=true]{background:var(--fill);color:#fff}
.switch button:focus-visible,summary:focus-visible,a:focus-visible{outline:2px solid var(--fill);
outline-offset:2px}
.meta{display:flex;flex-wrap:wrap;gap:4px 18px;color:var(--muted);font-size:13px;margin:0 0 14px;padding:0;
list-style:none}
.meta b{color:var(--ink);font-weight:600}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(138px,1fr));gap:10px;margin:18px 0}
.tile{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:12px 14px}
.tile b{display:block;white-space:nowrap;font-size:23px;line-height:1.25;font-weight:650;
font-variant-numeric:tabular-nums}
.tile span.l{color:var(--muted);font-size:13px}
nav{display:flex;flex-wrap:wrap;gap:6px 16px;font-size:13px;margin:0 0 18px}
nav a{color:var(--fill);text-decoration:none}
nav a:hover{text-decoration:underline}
section{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:18px 20px;
margin:0 0 16px}
section.alarms{background:var(--warn);border-color:var(--warnline)}
.alarms ul{margin:6px 0 0;padding-left:20px}
.alarms li{margin:4px 0;overflow-wrap:anywhere}
.two,.three{display:grid;gap:22px 28px;grid-template-columns:repeat(2,minmax(0,1fr))}
.three{grid-template-columns:repeat(3,minmax(0,1fr))}
@media screen and (max-width:860px){.two,.three{grid-template-columns:minmax(0,1fr)}
.top{flex-direction:column}}
@media screen and (max-width:600px){.page{padding:16px 10px 40px}section{padding:14px 12px}
.lead{font-size:16px}.tiles{grid-template-columns:repeat(2,1fr);gap:8px}
#s_funnel tr{display:grid;grid-template-columns:1.2fr 1fr 1.3fr 1.1fr .9fr 1fr;gap:0 5px;
border-bottom:1px solid var(--line)}
#s_funnel th,#s_funnel td{border:0;padding:4px 0;font-size:12px}
#s_funnel th.b{display:none}#s_funnel th{font-size:11.5px}
#s_funnel td.b{grid-column:1/-1;order:9;width:auto;padding-bottom:8px}
#s_rules tr{display:grid;grid-template-columns:repeat(3,1fr);
border-bottom:1px solid var(--line);padding:6px 0}
#s_rules th,#s_rules td{border:0;padding:1px 0;text-align:left}#s_rules .b,
#s_rules th:first-child,#s_rules th:last-child{display:none}
#s_rules td:first-child,#s_rules td:last-child{grid-column:1/-1}}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:13.5px}
th{font-weight:600;color:var(--muted);text-align:left;font-size:12.5px;white-space:nowrap}
th,td{padding:5px 10px 5px 0;border-bottom:1px solid var(--line);vertical-align:middle}
th:last-child,td:last-child{padding-right:0}
tbody tr:last-child td{border-bottom:0}
td{overflow-wrap:break-word}bdi.far{overflow-wrap:anywhere}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap;overflow-wrap:normal}
td.b,th.b{width:34%;min-width:110px}
td code,pre{font:12.5px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
.heat{background:color-mix(in srgb,var(--removed) calc(var(--h)*.55),transparent);
padding-right:8px;print-color-adjust:exact;-webkit-print-color-adjust:exact}
tbody th{font-size:13.5px;color:var(--ink);overflow-wrap:anywhere;white-space:normal}
.what,.kinds{display:block;font-size:12.5px}
td code.setting{font-size:11.5px;color:var(--muted);overflow-wrap:anywhere}
.tag.good{background:var(--kept);color:var(--card)}
.stands{margin:0 0 10px}.held{background:var(--warn);border:1px solid var(--warnline);border-radius:10px;
padding:8px 14px;overflow-wrap:anywhere}.held ul{margin:2px 0 4px;padding-left:20px}
.held code{font:12.5px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
.small{display:block;color:var(--muted);font-size:12px}
.bar{display:flex;height:14px;border-radius:4px;overflow:hidden;background:transparent}
.bar i{display:block;min-width:2px}.bar i:last-child{border-radius:0 4px 4px 0}
.kept{background:var(--kept)}.removed{background:var(--removed)}.deadc{background:var(--dead)}
.fillc{background:var(--fill)}.ghost{background:var(--soft)}
.key{display:flex;flex-wrap:wrap;gap:4px 16px;font-size:13px;color:var(--muted);margin:0 0 8px}
.key i{display:inline-block;width:11px;height:11px;border-radius:3px;margin-right:6px;vertical-align:-1px}
.tag{display:inline-block;white-space:nowrap;background:var(--soft);border-radius:6px;padding:0 7px;
font-size:12px}
.tag.bad{background:var(--warn);border:1px solid var(--warnline)}
figure{margin:0}.two+div{margin-top:20px}
svg{display:block;width:100%;height:auto}
svg text{fill:var(--muted);font-size:11px;font-family:inherit}
svg .axis{font-size:11.5px}svg .strong{fill:var(--ink);font-weight:600;font-size:12px}
.fill{fill:var(--fill)}.grid{stroke:var(--line)}.line{fill:none;stroke:var(--fill);stroke-width:2.2}
.area{fill:var(--soft)}.mark{stroke:var(--removed);stroke-width:1.6;stroke-dasharray:4 3}
details{margin-top:8px;font-size:13px}
summary{cursor:pointer;color:var(--muted)}
pre{background:var(--head);border-radius:8px;padding:9px 12px;margin:2px 0 12px;overflow-x:auto;
white-space:pre-wrap;overflow-wrap:anywhere}
.zh{display:none}
html.zh-on .zh{display:inline}html.zh-on .en{display:none}
footer{color:var(--muted);font-size:12.5px;margin-top:18px}
@media print{:root{color-scheme:light;--bg:#fff;--card:#fff;--ink:#111;--muted:#444;--line:#ccc;
--kept:#0d8a86;--removed:#dd9a2b;--dead:#c63d49;--fill:#3a67c8;--soft:#e7edf9;--warn:#fff6e3;
--warnline:#e2a93c;--head:#f2f4f7}
body{font-size:12px}.page{max-width:none;padding:0}.switch,nav,summary{display:none}
section{break-inside:avoid-page;border-radius:0;padding:10px 0;border-width:1px 0 0}
section.long{break-inside:auto}tr,figure,.two>div{break-inside:avoid}
h2,h3,h2+p{break-after:avoid}td.b,th.b{width:22%;min-width:60px}.wide{overflow:visible}th,th.n{white-space:normal}
.tiles{grid-template-columns:repeat(6,1fr)}.tile{padding:6px 9px}.tile b{font-size:16px}
table{font-size:11px}th{font-size:10.5px}.two{gap:14px 20px}
.bar,.bar i,.tag,pre,.alarms{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
"""
"""Light and dark by the reader's setting; narrow screens stack; print is light and unfolded of chrome."""

SCRIPT = """
(function(){var d=document,h=d.documentElement,b=d.querySelectorAll('.switch button');
function set(l){h.className=l==='zh'?'zh-on':'';h.lang=l;
for(var i=0;i<b.length;i++)b[i].setAttribute('aria-pressed',String(b[i].value===l));}
for(var i=0;i<b.length;i++)b[i].addEventListener('click',function(){set(this.value);});
set(/^zh/i.test(navigator.language||'')?'zh':'en');})();
"""
"""Without scripts the report stays in English."""
