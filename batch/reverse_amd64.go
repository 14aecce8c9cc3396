//go:build !purego

package batch

// reverseEnds swaps cells of the given width from both ends of data, reversing their order, in
// blocks of 32 bytes. It returns the rest, in the middle.
func reverseEnds(data []byte, width int) []byte {
	n := len(data)
	if n < 64 {
		return data
	}
	switch width {
	case 1:
		reverseBlocks1(&data[0], n)
	case 2:
		reverseBlocks2(&data[0], n)
	case 4:
		reverseBlocks4(&data[0], n)
	case 8:
		reverseBlocks8(&data[0], n)
	case 16:
		reverseBlocks16(&data[0], n)
	default:
		return data
	}
	done := n / 64 * 32
	return data[done : n-done]
}

//go:noescape
func reverseBlocks1(data *byte, n int)

//go:noescape
func reverseBlocks2(data *byte, n int)

//go:noescape
func reverseBlocks4(data *byte, n int)

//go:noescape
func reverseBlocks8(data *byte, n int)

//go:noescape
func reverseBlocks16(data *byte, n int)
