// NEXTCHUNK moves to the next chunk of the run that is R9, or to end: SI becomes the address of its stream,
// and the given registers move to its refs.
#define NEXTCHUNK(refs, last, end) \
	DECQ    (R9)             \
	JLE     end              \
	MOVQ    16(R9), R10      \
	INCQ    R10              \
	MOVQ    R10, 16(R9)      \
	MOVQ    32(R9), SI       \
	MOVL    (SI)(R10*4), SI  \
	ADDQ    24(R9), SI       \
	ADDQ    $4, SI           \
	MOVQ    8(R9), R10       \
	ADDQ    R10, refs        \
	ADDQ    R10, last        \
	XORQ    R11, R11
