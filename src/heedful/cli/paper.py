"""`heedful paper`: the paper's figures, tables and claims."""

from heedful.cli.options import command_group
from heedful.cli.paper_check_claims import claims
from heedful.cli.paper_claims import positions, scaling
from heedful.cli.paper_figures import figure3, figure4, figure5, heads
from heedful.cli.paper_table1 import table1
from heedful.cli.paper_table2 import table2
from heedful.cli.paper_table3 import table3
from heedful.cli.plugin_option import with_plugins
from heedful.tasks.registry import task_modules

app = command_group("paper", "Reproduce the paper's figures and tables; check its claims.")
app.command()(claims)
app.command()(with_plugins(figure3))
app.command()(with_plugins(figure4))
app.command()(with_plugins(figure5))
app.command()(with_plugins(heads))
app.command()(positions)
app.command()(scaling)
app.command()(table1)
app.command()(table2)
app.command()(table3)
for _task in task_modules("cli"):
    for _command in _task.PAPER:
        app.command()(with_plugins(_command))
