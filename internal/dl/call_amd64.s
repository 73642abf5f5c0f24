//go:build linux && !purego && !nocuda

#include "textflag.h"

GLOBL ·trampoline(SB), NOPTR|RODATA, $8
DATA ·trampoline(SB)/8, $warpline_dl_call(SB)

// int32 warpline_dl_call(frame *f), called in the C convention on the system stack. With the saved BP the 48 bytes of
// arguments 7 to 12 leave SP a multiple of 16 at the call.
TEXT warpline_dl_call(SB), NOSPLIT, $48-0
	MOVQ 56(DI), AX
	MOVQ AX, 0(SP)
	MOVQ 64(DI), AX
	MOVQ AX, 8(SP)
	MOVQ 72(DI), AX
	MOVQ AX, 16(SP)
	MOVQ 80(DI), AX
	MOVQ AX, 24(SP)
	MOVQ 88(DI), AX
	MOVQ AX, 32(SP)
	MOVQ 96(DI), AX
	MOVQ AX, 40(SP)
	MOVQ 0(DI), R10
	MOVQ 16(DI), SI
	MOVQ 24(DI), DX
	MOVQ 32(DI), CX
	MOVQ 40(DI), R8
	MOVQ 48(DI), R9
	MOVQ 8(DI), DI
	XORL AX, AX // variadic functions: no floating-point arguments
	CALL R10
	RET
