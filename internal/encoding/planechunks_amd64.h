// NEXTCHUNK moves to the next chunk of the chunkRun at R9: SI becomes the address of its stream, and
// refs and last move to its refs. After the last chunk it jumps to end.
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
