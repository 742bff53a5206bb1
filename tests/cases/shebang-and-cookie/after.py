#!/usr/bin/env python
# -*- coding: utf-8 -*-
import os
# about a
a = 1
