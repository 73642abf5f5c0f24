//go:build linux && !purego && !nocuda

#include "textflag.h"

GLOBL ·trampoline(SB), NOPTR|RODATA, $8
DATA ·trampoline(SB)/8, $warpline_dl_call(SB)

// int32 warpline_dl_call(frame *f), called in the C convention on the system stack. The assembler saves the link
// register at 0(RSP), where C expects the ninth argument, and the frame pointer at -8(RSP): hence the second step down, by
// the 32 bytes of arguments 9 to 12 and 16 that keep them off the frame pointer and RSP a multiple of 16.
TEXT warpline_dl_call(SB), NOSPLIT, $0-0
	SUB  $48, RSP
	MOVD 72(R0), R9
	MOVD 80(R0), R10
	STP  (R9, R10), 0(RSP)
	MOVD 88(R0), R9
	MOVD 96(R0), R10
	STP  (R9, R10), 16(RSP)
	MOVD 0(R0), R9
	MOVD 16(R0), R1
	MOVD 24(R0), R2
	MOVD 32(R0), R3
	MOVD 40(R0), R4
	MOVD 48(R0), R5
	MOVD 56(R0), R6
	MOVD 64(R0), R7
	MOVD 8(R0), R0
	BL   (R9)
	ADD  $48, RSP
	RET
