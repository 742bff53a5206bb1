"""Nothing here yet."""

import os
