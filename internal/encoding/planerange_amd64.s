//go:build !purego

#include "textflag.h"
#include "planechunks_amd64.h"

// NEXT loads a planeRef: R9 becomes the address of the plane at offset R11, R10 its number.
#define NEXT \
	MOVWLZX (R12), R9    \
	MOVBLZX 2(R12), R10  \
	ADDQ    SI, R9       \
	ADDQ    R11, R9

// BIT sets the carry flag to the plane's bit of the value at x.
#define BIT(x) \
	MOVQ    (x), R13     \
	TESTB   $64, R10     \
	CMOVQNE 8(x), R13    \
	BTQ     R10, R13

// DIVIDE makes high those cells of low that have the plane's bit, low the others, and passed none.
#define DIVIDE(offset, low, high, passed) \
	VPAND offset(R9), low, high  \
	VPXOR high, low, low         \
	VPXOR passed, passed, passed

// LOWZERO is a plane in which lo has a 0: passed |= low & p, low &^= p.
#define LOWZERO(offset, low, passed, t) \
	VPAND offset(R9), low, t  \
	VPOR  t, passed, passed   \
	VPXOR t, low, low

// HIGHONE is a plane in which hi has a 1: passed |= high &^ p, high &= p.
#define HIGHONE(offset, high, passed, t) \
	VPAND offset(R9), high, t \
	VPXOR t, high, high       \
	VPOR  high, passed, passed \
	VMOVDQA t, high

// HIGHZERO is a plane in which hi has a 0: high &^= p.
#define HIGHZERO(offset, high, t) \
	VPAND offset(R9), high, t \
	VPXOR t, high, high

// RESULT writes back the cells that passed.
#define RESULT(offset, low, high, passed) \
	VPOR    high, low, low    \
	VPOR    passed, low, low  \
	VMOVDQU low, offset(DI)(R11*1)

// func betweenWide(sel *uint64, base *byte, refs *planeRef, n, row int, lo, hi *uint128, run *chunkRun)
//
// Cells are tested in strips of 1024, in registers low (Y0 to Y3), high (Y4 to Y7) and passed (Y8 to
// Y11). The last strip may overlap the one before, since testing twice changes nothing.
TEXT ·betweenWide(SB), NOSPLIT, $0-64
	MOVQ sel+0(FP), DI
	MOVQ base+8(FP), SI
	MOVQ refs+16(FP), CX
	MOVQ n+24(FP), BX
	MOVQ row+32(FP), DX
	MOVQ lo+40(FP), R8
	MOVQ hi+48(FP), AX
	LEAQ -4(CX)(BX*4), BX            // the highest ref
	XORQ R11, R11

strip:
	VMOVDQU (DI)(R11*1), Y0
	VMOVDQU 32(DI)(R11*1), Y1
	VMOVDQU 64(DI)(R11*1), Y2
	VMOVDQU 96(DI)(R11*1), Y3
	VPOR    Y0, Y1, Y8
	VPOR    Y2, Y3, Y9
	VPOR    Y8, Y9, Y8
	VPTEST  Y8, Y8
	JZ      next
	MOVQ    BX, R12

common:
	NEXT
	BIT(R8)
	JCS   one
	BIT(AX)
	JCS   divide
	HIGHZERO(0, Y0, Y12)
	HIGHZERO(32, Y1, Y13)
	HIGHZERO(64, Y2, Y14)
	HIGHZERO(96, Y3, Y15)
	JMP   lower

one:
	VPAND (R9), Y0, Y0
	VPAND 32(R9), Y1, Y1
	VPAND 64(R9), Y2, Y2
	VPAND 96(R9), Y3, Y3

lower:
	SUBQ $4, R12
	CMPQ R12, CX
	JGE  common
	VPXOR Y4, Y4, Y4
	VPXOR Y5, Y5, Y5
	VPXOR Y6, Y6, Y6
	VPXOR Y7, Y7, Y7
	VPXOR Y8, Y8, Y8
	VPXOR Y9, Y9, Y9
	VPXOR Y10, Y10, Y10
	VPXOR Y11, Y11, Y11
	JMP  done

divide:
	DIVIDE(0, Y0, Y4, Y8)
	DIVIDE(32, Y1, Y5, Y9)
	DIVIDE(64, Y2, Y6, Y10)
	DIVIDE(96, Y3, Y7, Y11)
	JMP  more

plane:
	NEXT
	BIT(R8)
	JCC   lowzero
	VPAND (R9), Y0, Y0
	VPAND 32(R9), Y1, Y1
	VPAND 64(R9), Y2, Y2
	VPAND 96(R9), Y3, Y3
	JMP   high

lowzero:
	LOWZERO(0, Y0, Y8, Y12)
	LOWZERO(32, Y1, Y9, Y13)
	LOWZERO(64, Y2, Y10, Y14)
	LOWZERO(96, Y3, Y11, Y15)

high:
	BIT(AX)
	JCC   highzero
	HIGHONE(0, Y4, Y8, Y12)
	HIGHONE(32, Y5, Y9, Y13)
	HIGHONE(64, Y6, Y10, Y14)
	HIGHONE(96, Y7, Y11, Y15)
	JMP   more

highzero:
	HIGHZERO(0, Y4, Y12)
	HIGHZERO(32, Y5, Y13)
	HIGHZERO(64, Y6, Y14)
	HIGHZERO(96, Y7, Y15)

more:
	SUBQ  $4, R12
	CMPQ  R12, CX
	JLT   done
	TESTQ $12, R12                   // every fourth plane
	JNZ   plane
	VPOR  Y0, Y1, Y12
	VPOR  Y2, Y3, Y13
	VPOR  Y4, Y5, Y14
	VPOR  Y6, Y7, Y15
	VPOR  Y12, Y13, Y12
	VPOR  Y14, Y15, Y14
	VPOR  Y12, Y14, Y12
	VPTEST Y12, Y12
	JNZ   plane

done:
	RESULT(0, Y0, Y4, Y8)
	RESULT(32, Y1, Y5, Y9)
	RESULT(64, Y2, Y6, Y10)
	RESULT(96, Y3, Y7, Y11)

next:
	ADDQ $128, R11
	CMPQ R11, DX
	JGE  finish
	LEAQ -128(DX), R9
	CMPQ R11, R9
	CMOVQGT R9, R11
	JMP  strip

finish:
	MOVQ run+56(FP), R9
	NEXTCHUNK(CX, BX, return)
	ADDQ DX, DI
	JMP  strip

return:
	VZEROUPPER
	RET
