//go:build !purego

#include "textflag.h"

// SWAP is swap4, swap2 or swap1 on a and b: s is the number of bits, mask what is kept.
#define SWAP(s, mask, a, b) \
	VPSRLQ $s, a, Y8     \
	VPXOR  b, Y8, Y8     \
	VPAND  mask, Y8, Y8  \
	VPXOR  Y8, b, b      \
	VPSLLQ $s, Y8, Y8    \
	VPXOR  Y8, a, a

// STORE2 writes the low halves of a and b to offset lo of the output, and the high ones to offset hi.
#define STORE2(a, b, lo, hi) \
	VPERM2I128 $0x20, b, a, Y9  \
	VPERM2I128 $0x31, b, a, Y11 \
	VMOVDQU    Y9, lo(DI)       \
	VMOVDQU    Y11, hi(DI)

// func octetBytes(dst *byte, o *octet, blocks int)
TEXT ·octetBytes(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ o+8(FP), AX
	MOVQ blocks+16(FP), CX
	MOVQ 0(AX), SI                   // the planes
	MOVQ 8(AX), DX
	MOVQ 16(AX), R8
	MOVQ 24(AX), R9
	MOVQ 32(AX), R10
	MOVQ 40(AX), R11
	MOVQ 48(AX), R12
	MOVQ 56(AX), R13
	XORQ BX, BX                      // offset in the planes
	MOVQ $0x0f0f0f0f0f0f0f0f, AX
	VMOVQ AX, X13
	VPBROADCASTQ X13, Y13
	MOVQ $0x3333333333333333, AX
	VMOVQ AX, X14
	VPBROADCASTQ X14, Y14
	MOVQ $0x5555555555555555, AX
	VMOVQ AX, X15
	VPBROADCASTQ X15, Y15

block:
	VMOVDQU (SI)(BX*1), Y0
	VMOVDQU (DX)(BX*1), Y1
	VMOVDQU (R8)(BX*1), Y2
	VMOVDQU (R9)(BX*1), Y3
	VMOVDQU (R10)(BX*1), Y4
	VMOVDQU (R11)(BX*1), Y5
	VMOVDQU (R12)(BX*1), Y6
	VMOVDQU (R13)(BX*1), Y7

	// Bits: byte g of register j becomes the byte of cell 8g+j.
	SWAP(4, Y13, Y0, Y4)
	SWAP(4, Y13, Y1, Y5)
	SWAP(4, Y13, Y2, Y6)
	SWAP(4, Y13, Y3, Y7)
	SWAP(2, Y14, Y0, Y2)
	SWAP(2, Y14, Y1, Y3)
	SWAP(2, Y14, Y4, Y6)
	SWAP(2, Y14, Y5, Y7)
	SWAP(1, Y15, Y0, Y1)
	SWAP(1, Y15, Y2, Y3)
	SWAP(1, Y15, Y4, Y5)
	SWAP(1, Y15, Y6, Y7)

	// Bytes: registers are woven together until the cells stand in order, by halves of 16 bytes.
	VPUNPCKLBW Y1, Y0, Y8
	VPUNPCKHBW Y1, Y0, Y0
	VPUNPCKLBW Y3, Y2, Y9
	VPUNPCKHBW Y3, Y2, Y2
	VPUNPCKLBW Y5, Y4, Y10
	VPUNPCKHBW Y5, Y4, Y4
	VPUNPCKLBW Y7, Y6, Y11
	VPUNPCKHBW Y7, Y6, Y6
	VPUNPCKLWD Y9, Y8, Y1
	VPUNPCKHWD Y9, Y8, Y8
	VPUNPCKLWD Y2, Y0, Y3
	VPUNPCKHWD Y2, Y0, Y0
	VPUNPCKLWD Y11, Y10, Y5
	VPUNPCKHWD Y11, Y10, Y10
	VPUNPCKLWD Y6, Y4, Y7
	VPUNPCKHWD Y6, Y4, Y4
	VPUNPCKLDQ Y5, Y1, Y2
	VPUNPCKHDQ Y5, Y1, Y1
	STORE2(Y2, Y1, 0, 128)
	VPUNPCKLDQ Y10, Y8, Y2
	VPUNPCKHDQ Y10, Y8, Y8
	STORE2(Y2, Y8, 32, 160)
	VPUNPCKLDQ Y7, Y3, Y2
	VPUNPCKHDQ Y7, Y3, Y3
	STORE2(Y2, Y3, 64, 192)
	VPUNPCKLDQ Y4, Y0, Y2
	VPUNPCKHDQ Y4, Y0, Y0
	STORE2(Y2, Y0, 96, 224)

	ADDQ $32, BX
	ADDQ $256, DI
	DECQ CX
	JNZ  block
	VZEROUPPER
	RET

// func join2(dst, src *byte, n int)
TEXT ·join2(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), DX
	MOVQ DX, CX

two:
	VMOVDQU (SI), Y0
	VMOVDQU (SI)(DX*1), Y1
	VPUNPCKLBW Y1, Y0, Y2
	VPUNPCKHBW Y1, Y0, Y3
	STORE2(Y2, Y3, 0, 32)
	ADDQ $32, SI
	ADDQ $64, DI
	SUBQ $32, CX
	JNZ  two
	VZEROUPPER
	RET

// JOIN4 makes of 32 bytes of each of four series, from p on, 32 words of 4 bytes in a, b, c and d.
#define JOIN4(p, a, b, c, d) \
	VMOVDQU (p), Y8             \
	VMOVDQU (p)(DX*1), Y9       \
	VMOVDQU (p)(DX*2), Y10      \
	VMOVDQU (p)(R8*1), Y11      \
	VPUNPCKLBW Y9, Y8, b        \
	VPUNPCKHBW Y9, Y8, d        \
	VPUNPCKLBW Y11, Y10, Y9     \
	VPUNPCKHBW Y11, Y10, Y11    \
	VPUNPCKLWD Y9, b, a         \
	VPUNPCKHWD Y9, b, b         \
	VPUNPCKLWD Y11, d, c        \
	VPUNPCKHWD Y11, d, d

// func join4(dst, src *byte, n int)
TEXT ·join4(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), DX
	MOVQ DX, CX
	LEAQ (DX)(DX*2), R8

four:
	JOIN4(SI, Y0, Y1, Y2, Y3)
	STORE2(Y0, Y1, 0, 64)
	STORE2(Y2, Y3, 32, 96)
	ADDQ $32, SI
	ADDQ $128, DI
	SUBQ $32, CX
	JNZ  four
	VZEROUPPER
	RET

// JOIN8 weaves a with b and writes four cells of 8 bytes to lo, and four to hi.
#define JOIN8(a, b, lo, hi) \
	VPUNPCKLDQ b, a, Y8  \
	VPUNPCKHDQ b, a, Y10 \
	STORE2(Y8, Y10, lo, hi)

// func join8(dst, src *byte, n int)
TEXT ·join8(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), DX
	MOVQ DX, CX
	LEAQ (DX)(DX*2), R8
	LEAQ (SI)(DX*4), R9

eight:
	JOIN4(SI, Y0, Y1, Y2, Y3)
	JOIN4(R9, Y4, Y5, Y6, Y7)
	JOIN8(Y0, Y4, 0, 128)
	JOIN8(Y1, Y5, 32, 160)
	JOIN8(Y2, Y6, 64, 192)
	JOIN8(Y3, Y7, 96, 224)
	ADDQ $32, SI
	ADDQ $32, R9
	ADDQ $256, DI
	SUBQ $32, CX
	JNZ  eight
	VZEROUPPER
	RET

// func joinNarrow(dst, src *byte, n int, high uint32)
TEXT ·joinNarrow(SB), NOSPLIT, $0-28
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), DX
	MOVL high+24(FP), AX
	MOVQ DX, CX
	LEAQ (DX)(DX*2), R8
	VMOVD AX, X4
	VPBROADCASTD X4, Y4

narrow:
	JOIN4(SI, Y0, Y1, Y2, Y3)
	JOIN8(Y0, Y4, 0, 128)
	JOIN8(Y1, Y4, 32, 160)
	JOIN8(Y2, Y4, 64, 192)
	JOIN8(Y3, Y4, 96, 224)
	ADDQ $32, SI
	ADDQ $256, DI
	SUBQ $32, CX
	JNZ  narrow
	VZEROUPPER
	RET
