//go:build !purego

#include "textflag.h"

// REVERSE swaps blocks of 32 bytes from both ends of bytes [DI, SI) as long as two of them are
// left, and reverses the cells in each half of a block with CELLS. It needs SSE2 only, which every
// amd64 machine has.
#define REVERSE(CELLS) \
	MOVQ  data+0(FP), DI \
	MOVQ  n+8(FP), SI    \
	MOVQ  SI, CX         \
	SHRQ  $6, CX         \
	ADDQ  DI, SI         \
	TESTQ CX, CX         \
	JZ    done           \
loop:                    \
	MOVOU (DI), X0       \
	MOVOU 16(DI), X1     \
	MOVOU -16(SI), X2    \
	MOVOU -32(SI), X3    \
	CELLS(X0, X4)        \
	CELLS(X1, X5)        \
	CELLS(X2, X6)        \
	CELLS(X3, X7)        \
	MOVOU X2, (DI)       \
	MOVOU X3, 16(DI)     \
	MOVOU X0, -16(SI)    \
	MOVOU X1, -32(SI)    \
	ADDQ  $32, DI        \
	SUBQ  $32, SI        \
	DECQ  CX             \
	JNZ   loop           \
done:                    \
	RET

// Each of these reverses the cells of x; t is a register that it may use.
#define CELLS16(x, t)
#define CELLS8(x, t) \
	PSHUFL $0x4e, x, x
#define CELLS4(x, t) \
	PSHUFL $0x1b, x, x
#define CELLS2(x, t) \
	PSHUFLW $0x1b, x, x \
	PSHUFHW $0x1b, x, x \
	PSHUFL  $0x4e, x, x
#define CELLS1(x, t) \
	CELLS2(x, t)  \
	MOVO  x, t    \
	PSRLW $8, x   \
	PSLLW $8, t   \
	POR   t, x

// func reverseBlocks1(data *byte, n int)
TEXT ·reverseBlocks1(SB), NOSPLIT, $0-16
	REVERSE(CELLS1)

// func reverseBlocks2(data *byte, n int)
TEXT ·reverseBlocks2(SB), NOSPLIT, $0-16
	REVERSE(CELLS2)

// func reverseBlocks4(data *byte, n int)
TEXT ·reverseBlocks4(SB), NOSPLIT, $0-16
	REVERSE(CELLS4)

// func reverseBlocks8(data *byte, n int)
TEXT ·reverseBlocks8(SB), NOSPLIT, $0-16
	REVERSE(CELLS8)

// func reverseBlocks16(data *byte, n int)
TEXT ·reverseBlocks16(SB), NOSPLIT, $0-16
	REVERSE(CELLS16)
