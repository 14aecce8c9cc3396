package schema

import (
	"encoding/binary"
	"math/bits"

	"github.com/oribi-db/oribi/internal/fault"
)

// Format of an array cell wherever cells are byte strings: in row images, change lists, log
// records, delta files and defaults. Column files store arrays in Kudu's format (cfile spec §7.2)
// instead.
//
//	width      field
//	2          n, number of elements, including NULLs
//	⌈n/8⌉      presence, bit i (lowest first) is element i, 1 = not NULL
//	then, for elements of fixed width:
//	  m×Width  the m elements that are not NULL, little-endian
//	or, for byte strings:
//	  m×4      end offset of each of the m byte strings in the heap; the first begins at 0
//	  rest     heap: the byte strings, back to back
//
// Each array has exactly one encoding, and equal arrays have equal bytes: unused presence bits are
// 0, bools are 0 or 1, and the heap ends with the last byte string. A NULL element takes one bit,
// which bounds the memory of an array that is small in a file.
//
// INT32 {5, NULL, −1}:    03 00 05 05 00 00 00 ff ff ff ff
// STRING {"hi", "", "x"}: 03 00 07 02 00 00 00 02 00 00 00 03 00 00 00 68 69 78
// no elements:            00 00
const (
	arrayCountLen = 2 // file format: never change
	arrayEndLen   = 4 // file format: never change
)

// AppendArray appends the cell of an array to dst. elements are cells of type element, nil for
// NULL; there are at most MaxElements.
func AppendArray(dst []byte, element Type, elements [][]byte) []byte {
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(elements)))
	at := len(dst)
	for range (len(elements) + 7) / 8 {
		dst = append(dst, 0)
	}
	for i, e := range elements {
		if e != nil {
			dst[at+i>>3] |= 1 << (i & 7)
		}
	}
	if element.Variable() {
		end := 0
		for _, e := range elements {
			if e != nil {
				end += len(e)
				dst = binary.LittleEndian.AppendUint32(dst, uint32(end))
			}
		}
	}
	for _, e := range elements {
		dst = append(dst, e...)
	}
	return dst
}

// ArrayElements appends the elements of an array cell to dst, nil for NULL; they alias the cell.
// Errors: ErrCorrupt for bytes that AppendArray does not write; dst is then returned unchanged.
func ArrayElements(dst [][]byte, element Type, cell []byte) ([][]byte, error) {
	n, present, values, err := openArray(element, cell)
	if err != nil {
		return dst, err
	}
	width, at, heap := element.Width(), 0, values
	if width == 0 {
		heap = values[arrayEndLen*countOnes(present):]
	}
	for i := range n {
		switch {
		case present[i>>3]>>(i&7)&1 == 0:
			dst = append(dst, nil)
		case width > 0:
			dst = append(dst, values[at:at+width:at+width])
			at += width
		default:
			end := int(binary.LittleEndian.Uint32(values))
			values = values[arrayEndLen:]
			dst = append(dst, heap[at:end:end])
			at = end
		}
	}
	return dst, nil
}

// ArrayLen returns the number of elements of a valid cell.
func ArrayLen(cell []byte) int { return int(binary.LittleEndian.Uint16(cell)) }

// CheckArray returns ErrCorrupt unless cell is a valid array of elements of the given type.
func CheckArray(element Type, cell []byte) error {
	_, _, _, err := openArray(element, cell)
	return err
}

// openArray checks a cell and splits it; values begins after the presence bitmap.
func openArray(element Type, cell []byte) (n int, present, values []byte, err error) {
	if len(cell) < arrayCountLen {
		return 0, nil, nil, fault.Corruptf("array: %d bytes", len(cell))
	}
	n = ArrayLen(cell)
	size := (n + 7) / 8
	if len(cell)-arrayCountLen < size {
		return 0, nil, nil, fault.Corruptf("array: %d elements in %d bytes", n, len(cell))
	}
	present, values = cell[arrayCountLen:arrayCountLen+size], cell[arrayCountLen+size:]
	if n&7 != 0 && present[size-1]>>(n&7) != 0 {
		return 0, nil, nil, fault.Corruptf("array: presence bits set after the last of %d elements", n)
	}
	m := countOnes(present)
	if w := element.Width(); w > 0 {
		if len(values) != m*w {
			return 0, nil, nil, fault.Corruptf("array: %d elements of type %s in %d bytes", m, element, len(values))
		}
		if element == Bool {
			for _, b := range values {
				if b > 1 {
					return 0, nil, nil, fault.Corruptf("array: a bool of %d", b)
				}
			}
		}
		return n, present, values, nil
	}
	if len(values) < m*arrayEndLen {
		return 0, nil, nil, fault.Corruptf("array: ends of %d byte strings in %d bytes", m, len(values))
	}
	heap, end := len(values)-m*arrayEndLen, 0
	for i := range m {
		next := int(binary.LittleEndian.Uint32(values[i*arrayEndLen:]))
		if next < end || next > heap {
			return 0, nil, nil, fault.Corruptf("array: byte string [%d, %d) of a heap of %d bytes", end, next, heap)
		}
		end = next
	}
	if end != heap {
		return 0, nil, nil, fault.Corruptf("array: %d trailing bytes after the last byte string", heap-end)
	}
	return n, present, values, nil
}

func countOnes(present []byte) int {
	n := 0
	for _, b := range present {
		n += bits.OnesCount8(b)
	}
	return n
}
