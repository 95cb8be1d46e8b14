"""Where the pool asks for room (room.pxd)."""

make_room = NULL
