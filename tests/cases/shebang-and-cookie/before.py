#!/usr/bin/env python
# -*- coding: utf-8 -*-
# about a
a = 1
