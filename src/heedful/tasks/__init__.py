"""
Tasks other than translation, which is the default task of a run.

A task is a subfolder with its settings, recipes, text, rules, scores and commands. One line in
`heedful.tasks.registry` registers it, and it may import any other package. Lower packages do not
import tasks: the registry names their modules, which are imported when they are used.

::

    task.py        TASK: settings, checks of settings, recipes, names of the modules below
    run.py         the behavior of a loaded run that depends on the task: `heedful.runs.task`
    text.py        training text, made from the files of the task
    cli/           `app` with its commands; `TRAINS`, the words of the command that trains;
                   `PAPER`, its commands of `heedful paper`
    quickstart.py  `quickstart`, the function of `heedful quickstart --task NAME`
"""
