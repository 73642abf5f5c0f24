//go:build !purego

#include "textflag.h"

// func walk(skip int, pcs *uintptr, n int) int
//
// A frame pointer points to the caller's frame pointer, which the return address
// follows; this function has no frame, so the register holds that of Capture. The
// chain ends with 0; one that does not rise, or leaves the stack (a callback from
// C), ends it too.
TEXT ·walk(SB), NOSPLIT|NOFRAME, $0-32
	MOVD skip+0(FP), R0
	MOVD pcs+8(FP), R1
	MOVD n+16(FP), R5
	MOVD R5, R7
	MOVD 8(g), R2 // g.stack.hi, an offset the runtime shares with C
	SUB  $16, R2
	MOVD RSP, R4
	SUB  $16, R4 // a frame pointer lies one word below its frame
	MOVD R29, R3

next:
	CMP  R4, R3
	BLS  done
	CMP  R2, R3
	BHI  done
	MOVD 8(R3), R6
	MOVD R3, R4
	MOVD (R3), R3
	SUBS $1, R0
	BGE  next
	MOVD.P R6, 8(R1)
	SUBS $1, R5
	BNE  next
	MOVD R7, ret+24(FP)
	RET

done:
	SUB  R5, R7
	MOVD R7, ret+24(FP)
	RET

// func word(at int) uint64
TEXT ·word(SB), NOSPLIT|NOFRAME, $0-16
	MOVD at+0(FP), R0
	ADD  g, R0, R0
	MOVD (R0), R0
	MOVD R0, ret+8(FP)
	RET
