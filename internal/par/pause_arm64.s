//go:build !purego

#include "textflag.h"

// func pause(n int)
TEXT ·pause(SB), NOSPLIT, $0-8
	MOVD n+0(FP), R0
	LSL  $4, R0 // YIELD returns at once on most processors: so many make the wait of a PAUSE
again:
	YIELD
	SUBS $1, R0
	BGT  again
	RET
