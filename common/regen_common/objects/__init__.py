"""The destination: where batches and the manifest are written and read.

``open_objects("s3://bucket/prefix")`` or ``open_objects("folder")`` gives an :class:`Objects`;
names below it are relative, such as ``{run}/batches/....jsonl.zst``.
"""

from regen_common.objects.interface import PUT_DEADLINE_S, ObjectInfo, Objects
from regen_common.objects.opening import open_objects

__all__ = ["PUT_DEADLINE_S", "ObjectInfo", "Objects", "open_objects"]
