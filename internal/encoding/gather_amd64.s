//go:build !purego

#include "textflag.h"

// Bit i mod 8.
DATA bitOf<>+0(SB)/8, $0x8040201008040201
DATA bitOf<>+8(SB)/8, $0x8040201008040201
GLOBL bitOf<>(SB), RODATA|NOPTR, $16

// func gatherOctets(dst, base *byte, refs *planeRef, n int, at, shift *[groupCells]uint8, low, high uint64)
//
// Z4 becomes the bytes of 64 cells: each plane of the octet adds its bit where the bit of the cell
// is 1.
TEXT ·gatherOctets(SB), NOSPLIT, $0-64
	MOVQ  dst+0(FP), DI
	MOVQ  base+8(FP), SI
	MOVQ  refs+16(FP), BX
	MOVQ  n+24(FP), CX
	MOVQ  at+32(FP), R8
	MOVQ  shift+40(FP), R9
	KMOVQ low+48(FP), K1
	KMOVQ high+56(FP), K2
	VMOVDQU64 (R8), Z0
	VBROADCASTI32X4 bitOf<>(SB), Z5
	VPSHUFB (R9), Z5, Z1             // the bit of each cell in its byte
	LEAQ  bitOf<>(SB), R12
	LEAQ  (BX)(CX*4), CX             // after the last ref
	VPXORQ Z4, Z4, Z4
	MOVBLZX 2(BX), R11
	ANDL  $0xf8, R11                 // the first plane of the octet

plane:
	MOVWLZX (BX), R9
	MOVBLZX 2(BX), R10
	ADDQ  SI, R9
	VMOVDQU8.Z (R9), K1, Z2
	VMOVDQU8.Z 64(R9), K2, Z3
	SUBL  R11, R10
	CMPL  R10, $8
	JCC   octet

bit:
	VPERMT2B Z3, Z0, Z2
	VPTESTMB Z1, Z2, K3
	VPBROADCASTB (R12)(R10*1), Z6
	VPADDB Z6, Z4, K3, Z4
	ADDQ  $4, BX
	CMPQ  BX, CX
	JLT   plane
	VMOVDQU64 Z4, (DI)(R11*8)
	VZEROUPPER
	RET

octet:
	VMOVDQU64 Z4, (DI)(R11*8)
	VPXORQ Z4, Z4, Z4
	ADDL  R11, R10
	MOVL  R10, R11
	ANDL  $0xf8, R11
	SUBL  R11, R10
	JMP   bit
