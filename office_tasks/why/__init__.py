"""Why an agent was started or was not, in sentences: `explain` asks, the other modules say (ADM-10.6)."""

from office_tasks.why.explain import Explanation, explain

__all__ = ["Explanation", "explain"]
