package wal

import (
	"errors"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
)

var exampleInstance = [16]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}

// The examples in the comments above headerLen, frameLen and footerLen.
const (
	headerExample = `
		6f 72 69 62 69 77 61 6c  01 00 00 00 00 00 00 00  00 00 00 00
		00 01 02 03 04 05 06 07  08 09 0a 0b 0c 0d 0e 0f
		02 00 00 00 00 00 00 00  08 00 00 00 00 00 00 00
		01 00 00 00 00 00 00 00  00 10 00 00 00 00 00 00  88 77 66 55 44 33 22 11
		ca e7 86 bd`
	frameExample = `
		03 00 00 00 01 01 00 00  02 00 00 00 00 00 00 00
		09 00 00 00 00 00 00 00  07 00 00 00 00 00 00 00
		00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00
		50 39 2f 89 94 5f af 78  b7 3f 4b 36 8a 6b ad bd
		61 62 63 00 00 00 00 00`
	footerExample = `
		00 00 00 00 02 00 00 00  02 00 00 00 00 00 00 00
		08 00 00 00 00 00 00 00  07 00 00 00 00 00 00 00
		88 77 66 55 44 33 22 11  d0 00 00 00 00 00 00 00
		01 00 00 00 8c 76 14 56`
)

func TestHeaderIsTheDocumentedExample(t *testing.T) {
	h := header{instance: exampleInstance, number: 2, first: 8, prev: link{1, 4096, 0x1122334455667788}}
	want := must.Hex(t, headerExample)
	must.Equal(t, h.encode(), want, "encoded")
	if got, problem, err := parseHeader(want); got != h || problem != "" || err != nil {
		t.Errorf("parsed %+v, %q, %v", got, problem, err)
	}
}

func TestFrameIsTheDocumentedExample(t *testing.T) {
	payload := []byte("abc")
	f := frame{length: 3, last: true, segment: 2, lsn: 9, durable: 7, hash: xxh3.Hash(payload), check: crc32c(payload)}
	want := must.Hex(t, frameExample)
	got := make([]byte, f.size())
	f.encode(got, seedCRC(exampleInstance))
	copy(got[frameLen:], payload)
	must.Equal(t, got, want, "encoded")
	if got, problem := parseFrame(want, 2, seedCRC(exampleInstance)); got != f || problem != "" {
		t.Errorf("parsed %+v, %q", got, problem)
	}
}

func TestFooterIsTheDocumentedExample(t *testing.T) {
	f := footer{segment: 2, last: 8, durable: 7, chain: 0x1122334455667788, bytes: 208, frames: 1}
	want := must.Hex(t, footerExample)
	must.Equal(t, f.encode(seedCRC(exampleInstance)), want, "encoded")
	if got, ok := parseFooter(want, 2, seedCRC(exampleInstance)); got != f || !ok {
		t.Errorf("parsed %+v, %v", got, ok)
	}
}

func TestHeadersWithAnyBitFlippedAreRefused(t *testing.T) {
	seed := seedCRC(exampleInstance)
	eachFlip := func(b []byte, n int, refused func(b []byte) bool) {
		for bit := range 8 * n {
			b[bit/8] ^= 1 << (bit % 8)
			must.Equal(t, refused(b), true, "bit", bit, "of", b, "is not noticed")
			b[bit/8] ^= 1 << (bit % 8)
		}
	}
	eachFlip(must.Hex(t, headerExample), headerLen, func(b []byte) bool {
		_, problem, _ := parseHeader(b)
		return problem != ""
	})
	eachFlip(must.Hex(t, frameExample), frameLen, func(b []byte) bool {
		_, problem := parseFrame(b, 2, seed)
		return problem != "" && !frameIntact(b, 2, seed)
	})
	eachFlip(must.Hex(t, footerExample), footerLen, func(b []byte) bool {
		_, ok := parseFooter(b, 2, seed)
		return !ok
	})
}

func TestFrameOfAnotherStoreOrSegmentIsRefused(t *testing.T) {
	b := must.Hex(t, frameExample)
	if _, problem := parseFrame(b, 3, seedCRC(exampleInstance)); !strings.Contains(problem, "segment 2") {
		t.Errorf("another segment's: %q", problem)
	}
	if _, problem := parseFrame(b, 2, seedCRC([16]byte{1})); !strings.Contains(problem, "crc") {
		t.Errorf("another store's: %q", problem)
	}
}

func TestNewerFormatIsUnsupported(t *testing.T) {
	for _, off := range []int{headerVersionOff, headerMustOff} {
		b := must.Hex(t, headerExample)
		b[off]++
		reseal(b)
		if _, problem, err := parseHeader(b); problem != "" || !errors.Is(err, fault.ErrUnsupported) {
			t.Errorf("byte %d raised: %q, %v", off, problem, err)
		}
	}
	b := must.Hex(t, headerExample)
	b[headerMayOff]++
	reseal(b)
	if _, problem, err := parseHeader(b); problem != "" || err != nil {
		t.Errorf("a flag that may be ignored: %q, %v", problem, err)
	}
}

// reseal makes the CRC of a changed segment header good.
func reseal(b []byte) {
	crc := crc32c(b[:headerCRCOff])
	b[76], b[77], b[78], b[79] = byte(crc), byte(crc>>8), byte(crc>>16), byte(crc>>24)
}

func TestNames(t *testing.T) {
	must.Equal(t, segmentName(12), "000000000012.wal")
	for name, want := range map[string]uint64{
		"000000000001.wal": 1, "999999999999.wal": maxNumber, "000000000000.wal": 0, "1.wal": 0, "000000000001.torn": 0,
		"00000000000a.wal": 0, "0000000000001.wal": 0, "+00000000001.wal": 0, "000000000001.wal.tmp": 0, "": 0,
	} {
		if got, ok := parseName(name); got != want || ok != (want > 0) {
			t.Errorf("%q: %d, %v", name, got, ok)
		}
	}
}
