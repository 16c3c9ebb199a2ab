# Spares every cell what ipykernel does for clients that read one channel after the other. Ours waits for the end of both.
from ipykernel.iostream import OutStream


def flush_only_what_there_is():
    flush = OutStream.flush  # hands over to the thread that sends and waits for it, four times a cell

    def flush_pending(stream):
        if stream._is_master_process():
            empty_pipe(stream)
        if getattr(stream, "_flush_pending", True) or not stream._is_master_process():
            flush(stream)

    OutStream.flush = flush_pending


async def nothing():
    pass


def keep_pace(kernel):
    flush_only_what_there_is()
    kernel._execute_sleep = 0  # before each reply
    kernel._flush_control_queue = nothing  # before each request: control has a thread of its own
