"""Work beside the turn: subagents, workflows, background commands and monitors.

A task may run in the foreground as well: every subagent has these frames, and so has a command
that runs for more than about three seconds.  At the end of a background task come `TaskUpdated`,
`TaskNotification` and `BackgroundTasksChanged`, in this order; a foreground command has the
notification alone.

Task types are ``local_agent``, ``local_workflow``, ``local_bash`` (commands and monitors) and
others.  A task that is revived keeps its ``task_id`` and gets a new ``run_id``; the run ids of
one task sort in time order.  Facts: CLI 2.1.332.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from claude_trio._values import field, frozen

from ._base import SessionFrame, WireObject, parts

__all__ = [
    "BackgroundTask",
    "BackgroundTasksChanged",
    "TaskNotification",
    "TaskProgress",
    "TaskStarted",
    "TaskUpdated",
]


@frozen(kw_only=True, eq=False, repr=False)
class TaskStarted(SessionFrame):
    """A task begins, or is revived.

    Attributes:
      task_id: The task; for a subagent also the ``agent_id`` of its messages.
      run_id: This run of it.
      task_type: What kind it is.
      tool_use_id: The call that started it.
      description: What it is for.
      subagent_type: The type of a subagent.
      workflow_name: The name of a workflow.
      prompt: What a subagent is asked.
      is_backgrounded: Whether it runs in the background.
      spawn_depth: How deep it is below the main thread, from 1.
      parent_task_id: The subagent that started it.
      owned_by_subagent: Whether a subagent started it.
      skip_transcript: Whether to leave it out of what is shown of the conversation.
      ambient: Whether it is no activity, such as a watcher.
    """

    task_id: str
    run_id: str | None = None
    task_type: str | None = None
    tool_use_id: str | None = None
    description: str | None = None
    subagent_type: str | None = None
    workflow_name: str | None = None
    prompt: str | None = None
    is_backgrounded: bool | None = None
    spawn_depth: int | None = None
    parent_task_id: str | None = None
    owned_by_subagent: bool = False
    skip_transcript: bool = False
    ambient: bool = False


@frozen(kw_only=True, eq=False, repr=False)
class TaskProgress(SessionFrame):
    """A task is getting on.

    Attributes:
      task_id: The task.
      run_id: This run of it.
      tool_use_id: The call that started it.
      description: What it is doing.
      subagent_type: The type of a subagent.
      usage: ``total_tokens``, ``tool_uses`` and ``duration_ms`` so far.
      last_tool_name: The tool that it used last.
      summary: What it has done.
      workflow_progress: How far the parts of a workflow are.
    """

    task_id: str
    run_id: str | None = None
    tool_use_id: str | None = None
    description: str | None = None
    subagent_type: str | None = None
    usage: Mapping[str, object] = field(factory=dict)
    last_tool_name: str | None = None
    summary: str | None = None
    workflow_progress: tuple[object, ...] = ()


@frozen(kw_only=True, eq=False, repr=False)
class TaskUpdated(SessionFrame):
    """Something about a task has changed; what has not is None.

    Attributes:
      task_id: The task.
      run_id: This run of it.
      patch: What has changed, as it came.
      status: ``pending``, ``running``, ``paused``, or one of the ends ``completed``, ``failed``
        and ``killed``.  A word that is not known is no end.
      description: What it is for.
      error: Why it failed.
      is_backgrounded: Whether it runs in the background.
      end_time: When it ended, in milliseconds since 1970.
      total_paused_ms: How long it was paused, in milliseconds.
    """

    _inner: ClassVar[str | None] = "patch"

    task_id: str
    run_id: str | None = None
    patch: Mapping[str, object] = field(factory=dict)
    status: str | None = None
    description: str | None = None
    error: str | None = None
    is_backgrounded: bool | None = None
    end_time: float | None = None
    total_paused_ms: float | None = None


@frozen(kw_only=True, eq=False, repr=False)
class TaskNotification(SessionFrame):
    """A task has ended.

    Attributes:
      task_id: The task.
      run_id: This run of it.
      tool_use_id: The call that started it.
      status: ``completed``, ``failed`` or ``stopped``.  A word that is not known is no end.
      summary: What came of it.
      summary_is_report: Whether that is the subagent's own report.
      output_file: Where its output is.
      usage: ``total_tokens``, ``tool_uses`` and ``duration_ms``.
      owned_by_subagent: Whether a subagent started it.
      reason: Why it was stopped.
      resource_links: What it refers to.
    """

    task_id: str
    run_id: str | None = None
    tool_use_id: str | None = None
    status: str | None = None
    summary: str | None = None
    summary_is_report: bool = False
    output_file: str | None = None
    usage: Mapping[str, object] = field(factory=dict)
    owned_by_subagent: bool = False
    reason: str | None = None
    resource_links: tuple[Mapping[str, object], ...] = ()


@frozen(kw_only=True, eq=False, repr=False)
class BackgroundTask(WireObject):
    """A task that runs in the background.

    Attributes:
      task_id: The task.
      run_id: This run of it.
      task_type: What kind it is.
      subagent_type: The type of a subagent.
      description: What it is for.
      parent_task_id: The subagent that started it.
      ambient: Whether it is no activity, such as a watcher.
    """

    task_id: str
    run_id: str | None = None
    task_type: str | None = None
    subagent_type: str | None = None
    description: str | None = None
    parent_task_id: str | None = None
    ambient: bool = False


@frozen(kw_only=True, eq=False, repr=False)
class BackgroundTasksChanged(SessionFrame):
    """What runs in the background now.

    Attributes:
      tasks: All of it, in place of what was before; foreground tasks are not in it.
    """

    tasks: tuple[BackgroundTask, ...] = field(default=(), metadata=parts(BackgroundTask))
