//go:build !purego

#include "textflag.h"

// func walk(skip int, pcs *uintptr, n int) int
//
// A frame pointer points to the caller's frame pointer, which the return address
// follows; this function has no frame, so the register holds that of Capture. The
// chain ends with 0; one that does not rise, or leaves the stack (a callback from
// C), ends it too.
TEXT ·walk(SB), NOSPLIT|NOFRAME, $0-32
	MOVQ skip+0(FP), CX
	MOVQ pcs+8(FP), DI
	MOVQ n+16(FP), DX
	MOVQ (TLS), R9
	MOVQ 8(R9), R9 // g.stack.hi, an offset the runtime shares with C
	SUBQ $16, R9
	MOVQ SP, R8
	MOVQ BP, SI

next:
	CMPQ SI, R8
	JLS  done
	CMPQ SI, R9
	JHI  done
	MOVQ 8(SI), AX
	MOVQ SI, R8
	MOVQ (SI), SI
	DECQ CX
	JGE  next
	MOVQ AX, (DI)
	ADDQ $8, DI
	DECQ DX
	JNZ  next
	MOVQ n+16(FP), AX
	MOVQ AX, ret+24(FP)
	RET

done:
	MOVQ n+16(FP), AX
	SUBQ DX, AX
	MOVQ AX, ret+24(FP)
	RET

// func word(at int) uint64
TEXT ·word(SB), NOSPLIT|NOFRAME, $0-16
	MOVQ at+0(FP), CX
	MOVQ (TLS), AX
	MOVQ (AX)(CX*1), AX
	MOVQ AX, ret+8(FP)
	RET
