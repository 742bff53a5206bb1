def f():
    return 1

async def f():
    async with x as y:
        await y
    async for z in y:
        a = 1
