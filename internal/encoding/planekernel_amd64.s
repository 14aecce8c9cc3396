//go:build !purego

#include "textflag.h"
#include "planechunks_amd64.h"

// NEXT loads a planeRef: R9 becomes the address of the plane at offset R11, R10 its number. Register
// R13 becomes the word of the value, at R8, that has the plane's bit.
#define NEXT \
	MOVWLZX (R12), R9    \
	MOVBLZX 2(R12), R10  \
	ADDQ    SI, R9       \
	ADDQ    R11, R9      \
	MOVQ    (R8), R13    \
	TESTB   $64, R10     \
	CMOVQNE 8(R8), R13

// ONE is a plane in which the value has a 1: below |= equal &^ p, equal &= p.
#define ONE(p, below, equal, t) \
	VPANDN equal, p, t  \
	VPAND  p, equal, equal \
	VPOR   t, below, below

// RESULT makes sel & ((below&Y13 | equal&Y14) ^ Y15) and writes it back.
#define RESULT(below, equal, offset) \
	VPAND   Y13, below, below  \
	VPAND   Y14, equal, equal  \
	VPOR    equal, below, below \
	VPXOR   Y15, below, below  \
	VPAND   offset(DI)(R11*1), below, below \
	VMOVDQU below, offset(DI)(R11*1)

// func compareWide(sel *uint64, base *byte, refs *planeRef, n, row int, x *uint128, op *comparison, inverted uint64, run *chunkRun)
//
// Cells are compared in strips of 1024, in registers below (Y0 to Y3) and equal (Y4 to Y7), or of
// 256 if there are fewer than 1024. The last strip may overlap the one before, since comparing twice
// changes nothing.
TEXT ·compareWide(SB), NOSPLIT, $0-72
	MOVQ sel+0(FP), DI
	MOVQ base+8(FP), SI
	MOVQ refs+16(FP), CX
	MOVQ n+24(FP), BX
	MOVQ row+32(FP), DX
	MOVQ x+40(FP), R8
	MOVQ op+48(FP), AX
	VPBROADCASTQ (AX), Y13
	VPBROADCASTQ 8(AX), Y14
	VPBROADCASTQ 16(AX), Y15
	MOVQ (AX), AX                    // 0 if below is not used
	LEAQ -4(CX)(BX*4), BX            // the highest ref
	XORQ R11, R11
	CMPQ DX, $128
	JLT  strip32

strip:
	VMOVDQU (DI)(R11*1), Y4
	VMOVDQU 32(DI)(R11*1), Y5
	VMOVDQU 64(DI)(R11*1), Y6
	VMOVDQU 96(DI)(R11*1), Y7
	VPOR    Y4, Y5, Y8
	VPOR    Y6, Y7, Y9
	VPOR    Y8, Y9, Y8
	VPTEST  Y8, Y8
	JZ      next
	VPXOR   Y0, Y0, Y0
	VPXOR   Y1, Y1, Y1
	VPXOR   Y2, Y2, Y2
	VPXOR   Y3, Y3, Y3
	MOVQ    BX, R12
	VPBROADCASTQ inverted+56(FP), Y12
	NEXT
	VPXOR (R9), Y12, Y8
	VPXOR 32(R9), Y12, Y9
	VPXOR 64(R9), Y12, Y10
	VPXOR 96(R9), Y12, Y11
	JMP   bit

plane:
	NEXT
	VMOVDQU (R9), Y8
	VMOVDQU 32(R9), Y9
	VMOVDQU 64(R9), Y10
	VMOVDQU 96(R9), Y11

bit:
	BTQ R10, R13
	JCC zero
	TESTQ AX, AX
	JZ  equal
	ONE(Y8, Y0, Y4, Y12)
	ONE(Y9, Y1, Y5, Y8)
	ONE(Y10, Y2, Y6, Y12)
	ONE(Y11, Y3, Y7, Y8)
	JMP more

equal:
	VPAND Y8, Y4, Y4
	VPAND Y9, Y5, Y5
	VPAND Y10, Y6, Y6
	VPAND Y11, Y7, Y7
	JMP   more

zero:
	VPANDN Y4, Y8, Y4
	VPANDN Y5, Y9, Y5
	VPANDN Y6, Y10, Y6
	VPANDN Y7, Y11, Y7

more:
	SUBQ  $4, R12
	CMPQ  R12, CX
	JLT   done
	TESTQ $12, R12                   // every fourth plane
	JNZ   plane
	VPOR  Y4, Y5, Y8
	VPOR  Y6, Y7, Y9
	VPOR  Y8, Y9, Y8
	VPTEST Y8, Y8
	JNZ   plane

done:
	RESULT(Y0, Y4, 0)
	RESULT(Y1, Y5, 32)
	RESULT(Y2, Y6, 64)
	RESULT(Y3, Y7, 96)

next:
	ADDQ $128, R11
	CMPQ R11, DX
	JGE  finish
	LEAQ -128(DX), R9
	CMPQ R11, R9
	CMOVQGT R9, R11
	JMP  strip

strip32:
	VMOVDQU (DI)(R11*1), Y4
	VPTEST  Y4, Y4
	JZ      next32
	VPXOR   Y0, Y0, Y0
	MOVQ    BX, R12
	VPBROADCASTQ inverted+56(FP), Y12
	NEXT
	VPXOR (R9), Y12, Y8
	JMP   bit32

plane32:
	NEXT
	VMOVDQU (R9), Y8

bit32:
	BTQ R10, R13
	JCC zero32
	ONE(Y8, Y0, Y4, Y12)
	JMP more32

zero32:
	VPANDN Y4, Y8, Y4

more32:
	SUBQ   $4, R12
	CMPQ   R12, CX
	JLT    done32
	TESTQ  $12, R12
	JNZ    plane32
	VPTEST Y4, Y4
	JNZ    plane32

done32:
	RESULT(Y0, Y4, 0)

next32:
	ADDQ $32, R11
	CMPQ R11, DX
	JGE  finish
	LEAQ -32(DX), R9
	CMPQ R11, R9
	CMOVQGT R9, R11
	JMP  strip32

finish:
	MOVQ run+64(FP), R9
	NEXTCHUNK(CX, BX, return)
	ADDQ DX, DI
	CMPQ DX, $128
	JGE  strip
	JMP  strip32

return:
	VZEROUPPER
	RET

// The number of bits in each nibble.
DATA nibbleBits<>+0(SB)/8, $0x0302020102010100
DATA nibbleBits<>+8(SB)/8, $0x0403030203020201
DATA nibbleBits<>+16(SB)/8, $0x0302020102010100
DATA nibbleBits<>+24(SB)/8, $0x0403030203020201
GLOBL nibbleBits<>(SB), RODATA|NOPTR, $32

// COUNT replaces the bytes of a by their numbers of bits.
#define COUNT(a, t) \
	VPAND   Y14, a, t  \
	VPSRLW  $4, a, a   \
	VPAND   Y14, a, a  \
	VPSHUFB t, Y15, t  \
	VPSHUFB a, Y15, a  \
	VPADDB  t, a, a

// TALLY adds the bytes of a to the tally of plane R10.
#define TALLY(a) \
	SHLQ    $5, R10             \
	VPSADBW Y13, a, a           \
	VPADDQ  (DI)(R10*1), a, a   \
	VMOVDQU a, (DI)(R10*1)

// func tallyWide(t *[4]uint64, base *byte, refs *planeRef, n, row int, sel *uint64, mask *byte, run *chunkRun)
TEXT ·tallyWide(SB), NOSPLIT, $0-64
	MOVQ t+0(FP), DI
	MOVQ base+8(FP), SI
	MOVQ refs+16(FP), BX
	MOVQ n+24(FP), CX
	MOVQ row+32(FP), DX
	MOVQ sel+40(FP), R8
	MOVQ mask+48(FP), R13
	VMOVDQU nibbleBits<>(SB), Y15
	MOVQ $0x0f0f0f0f0f0f0f0f, AX
	VMOVQ AX, X14
	VPBROADCASTQ X14, Y14
	VPXOR Y13, Y13, Y13
	LEAQ  (BX)(CX*4), CX             // after the last ref
	XORQ  R11, R11

chunk:
	SUBQ  $128, DX
	JLT   rest

strip:
	VMOVDQU (R8)(R11*1), Y0
	VMOVDQU 32(R8)(R11*1), Y1
	VMOVDQU 64(R8)(R11*1), Y2
	VMOVDQU 96(R8)(R11*1), Y3
	VPAND   (R13)(R11*1), Y0, Y0
	VPAND   32(R13)(R11*1), Y1, Y1
	VPAND   64(R13)(R11*1), Y2, Y2
	VPAND   96(R13)(R11*1), Y3, Y3
	VPOR    Y0, Y1, Y8
	VPOR    Y2, Y3, Y9
	VPOR    Y8, Y9, Y8
	VPTEST  Y8, Y8
	JZ      next
	MOVQ    BX, R12

plane:
	MOVWLZX (R12), R9
	MOVBLZX 2(R12), R10
	ADDQ    SI, R9
	VPAND (R9)(R11*1), Y0, Y4
	VPAND 32(R9)(R11*1), Y1, Y5
	VPAND 64(R9)(R11*1), Y2, Y6
	VPAND 96(R9)(R11*1), Y3, Y7
	COUNT(Y4, Y8)
	COUNT(Y5, Y9)
	COUNT(Y6, Y10)
	COUNT(Y7, Y11)
	VPADDB Y4, Y5, Y4
	VPADDB Y6, Y7, Y6
	VPADDB Y4, Y6, Y4
	TALLY(Y4)
	ADDQ $4, R12
	CMPQ R12, CX
	JLT  plane

next:
	ADDQ $128, R11
	CMPQ R11, DX
	JLE  strip

rest:
	ADDQ $128, DX

block:
	CMPQ R11, DX
	JGE  finish
	VMOVDQU (R8)(R11*1), Y0
	VPAND (R13)(R11*1), Y0, Y0
	MOVQ BX, R12

plane32:
	MOVWLZX (R12), R9
	MOVBLZX 2(R12), R10
	ADDQ    SI, R9
	VPAND (R9)(R11*1), Y0, Y4
	COUNT(Y4, Y8)
	TALLY(Y4)
	ADDQ $4, R12
	CMPQ R12, CX
	JLT  plane32
	ADDQ $32, R11
	JMP  block

finish:
	MOVQ run+56(FP), R9
	NEXTCHUNK(BX, CX, return)
	ADDQ DX, R8
	ADDQ DX, R13
	JMP  chunk

return:
	VZEROUPPER
	RET

// func keepBestWide(left *uint64, base *byte, refs *planeRef, n int, inverted, others uint64)
TEXT ·keepBestWide(SB), NOSPLIT, $0-48
	MOVQ left+0(FP), DI
	MOVQ base+8(FP), SI
	MOVQ refs+16(FP), CX
	MOVQ n+24(FP), BX
	VPBROADCASTQ inverted+32(FP), Y12
	VPBROADCASTQ others+40(FP), Y13
	LEAQ -4(CX)(BX*4), R12           // the highest ref
	VMOVDQU (DI), Y0
	VMOVDQU 32(DI), Y1
	VMOVDQU 64(DI), Y2
	VMOVDQU 96(DI), Y3

plane:
	MOVWLZX (R12), R9
	VPXOR (SI)(R9*1), Y12, Y4
	VPXOR 32(SI)(R9*1), Y12, Y5
	VPXOR 64(SI)(R9*1), Y12, Y6
	VPXOR 96(SI)(R9*1), Y12, Y7
	VMOVDQA Y13, Y12
	VPAND Y0, Y4, Y4
	VPAND Y1, Y5, Y5
	VPAND Y2, Y6, Y6
	VPAND Y3, Y7, Y7
	VPOR  Y4, Y5, Y8
	VPOR  Y6, Y7, Y9
	VPOR  Y8, Y9, Y8
	SUBQ  $4, R12
	VPTEST Y8, Y8
	JZ    worse
	VMOVDQA Y4, Y0
	VMOVDQA Y5, Y1
	VMOVDQA Y6, Y2
	VMOVDQA Y7, Y3

worse:
	CMPQ R12, CX
	JGE  plane
	VMOVDQU Y0, (DI)
	VMOVDQU Y1, 32(DI)
	VMOVDQU Y2, 64(DI)
	VMOVDQU Y3, 96(DI)
	VZEROUPPER
	RET

// func countWords(words *uint64, n int) int
TEXT ·countWords(SB), NOSPLIT, $0-24
	MOVQ words+0(FP), SI
	MOVQ n+8(FP), CX
	XORQ AX, AX
	SUBQ $4, CX
	JLT  rest

four:
	POPCNTQ (SI), R8
	POPCNTQ 8(SI), R9
	POPCNTQ 16(SI), R10
	POPCNTQ 24(SI), R11
	ADDQ    R8, AX
	ADDQ    R9, R10
	ADDQ    R11, AX
	ADDQ    R10, AX
	ADDQ    $32, SI
	SUBQ    $4, CX
	JGE     four

rest:
	ADDQ $4, CX
	JZ   finish

one:
	POPCNTQ (SI), R8
	ADDQ    R8, AX
	ADDQ    $8, SI
	DECQ    CX
	JNZ     one

finish:
	MOVQ AX, ret+16(FP)
	RET
