package compress

import "github.com/klauspost/compress/zstd"

// ZstdBound returns a number of bytes that the frames in src do not exceed, whatever size their
// headers claim: the sum over their blocks. Source: RFC 8878, sections 3.1.1 and 3.1.1.2.
func ZstdBound(src []byte) int {
	const (
		blockHeaderLen = 3
		maxBlock       = 128 << 10
		raw, rle       = 0, 1
		checksum       = 4
	)
	bound := 0
	for {
		var h zstd.Header
		if h.Decode(src) != nil || h.Skippable {
			return bound
		}
		src = src[min(h.HeaderSize, len(src)):]
		for last := false; !last; {
			if len(src) < blockHeaderLen {
				return bound
			}
			block := int(src[0]) | int(src[1])<<8 | int(src[2])<<16
			last = block&1 != 0
			size := block >> 3
			stored := size
			switch block >> 1 & 3 {
			case raw:
				bound += size
			case rle:
				bound += size
				stored = 1
			default:
				bound += maxBlock
			}
			if src = src[blockHeaderLen:]; stored > len(src) {
				return bound
			}
			src = src[stored:]
		}
		if h.HasCheckSum {
			src = src[min(checksum, len(src)):]
		}
	}
}
