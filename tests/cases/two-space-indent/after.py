class A:
  def f(self):
    if self:
      return 2
    return 1
