// SPDX-License-Identifier: GPL-2.0-only
/*
 * t3: the tracepoints' own code.
 */
#define CREATE_TRACE_POINTS
#include "trace.h"
