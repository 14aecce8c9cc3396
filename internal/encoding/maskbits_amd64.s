//go:build !purego

#include "textflag.h"

// func pext(x, m uint64) uint64
TEXT ·pext(SB), NOSPLIT, $0-24
	MOVQ  x+0(FP), AX
	PEXTQ m+8(FP), AX, AX
	MOVQ  AX, ret+16(FP)
	RET

// func pdep(x, m uint64) uint64
TEXT ·pdep(SB), NOSPLIT, $0-24
	MOVQ  x+0(FP), AX
	PDEPQ m+8(FP), AX, AX
	MOVQ  AX, ret+16(FP)
	RET
