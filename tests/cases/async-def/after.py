def f():
    return 1

async def f():
    async with x as y:
        await y.go()
    async for z in y:
        a = 1
