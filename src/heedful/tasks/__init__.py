"""
Tasks other than translation, which is the default task of a run.

A task is a folder here, with its settings, recipes, text, rules, scores and commands. One line in
`heedful.tasks.registry` makes it known, and it may import whatever it needs. Lower packages do not
import it: the registry names its modules, which are loaded when they are used.

::

    task.py        TASK: settings, what fits together, recipes, names of the modules below
    run.py         what a loaded run does differently: `heedful.runs.task`
    text.py        training text from the files that the task learns from
    cli/           `app`, its commands, `TRAINS`, the words of the command that trains, and
                   `PAPER`, its commands of `heedful paper`
    quickstart.py  `quickstart`, of `heedful quickstart --task NAME`
"""
