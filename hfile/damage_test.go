package hfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// dumpAll returns all that a reader sees in a file, with its first error.
func dumpAll(data []byte) (string, error) {
	r, err := Open(&block.Memory{Bytes: data}, ReaderOptions{})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	var keys []Key
	for c, err := range r.Cells() {
		if err != nil {
			return "", err
		}
		for _, field := range [][]byte{c.Row, c.Family, c.Qualifier, c.Value, c.Tags} {
			fmt.Fprintln(&b, len(field))
			b.Write(field)
		}
		fmt.Fprintln(&b, c.Timestamp, c.Type, c.Sequence, c.Tags != nil)
		if len(keys) < 8 {
			keys = append(keys, c.Clone().Key)
		}
	}
	for _, k := range keys {
		for _, view := range []View{ViewHBase, ViewHudi} {
			c := r.NewCursor(CursorOptions{View: view})
			code, err := c.SeekTo(k)
			if err != nil {
				return "", err
			}
			fmt.Fprintln(&b, code, c.Cell().Row)
			ok, err := c.SeekBefore(k)
			if err != nil {
				return "", err
			}
			fmt.Fprintln(&b, ok, c.Cell().Row)
		}
		cells, err := r.Get(k.Row)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(&b, len(cells))
	}
	return b.String(), nil
}

func mustBeTyped(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnsupported) {
		t.Errorf("neither ErrCorrupt nor ErrUnsupported: %v", err)
	}
}

// everyBit makes the tests here flip every bit instead of some.
var everyBit = os.Getenv("ORIBI_EVERY_BIT") != ""

// flips returns how many bits of the blocks of a file the tests flip, about.
func flips() int {
	if everyBit {
		return math.MaxInt
	}
	return seedtest.Rounds(10, 5)
}

// TestFlippedBitsInBlocksAreErrors flips bits in the blocks of files with CRC checksums.
func TestFlippedBitsInBlocksAreErrors(t *testing.T) {
	supported(t, func(t *testing.T, g goldenFile, r *Reader) {
		if isHudi(g) || strings.Contains(g.Name, "null") {
			return
		}
		data := g.bytes(t)
		rng := rand.New(rand.NewPCG(1, uint64(len(data))))
		end := 8 * int(r.end)
		step := max(1, end/flips())
		for bit := 0; bit < end; bit += step {
			at := min(end-1, bit+rng.IntN(step))
			changed := bytes.Clone(data)
			changed[at/8] ^= 1 << (at % 8)
			r, err := Open(&block.Memory{Bytes: changed}, ReaderOptions{})
			if err == nil {
				err = r.Verify(context.Background())
			}
			must.Refuse(t, err, at%8, at/8)
			mustBeTyped(t, err)
		}
	})
}

// TestFlippedBitsInTrailersChangeNothing flips bits of trailers: an error, or the same answers.
func TestFlippedBitsInTrailersChangeNothing(t *testing.T) {
	supported(t, func(t *testing.T, g goldenFile, r *Reader) {
		data := g.bytes(t)
		want := must.Get(dumpAll(data))(t)
		used := bytes.LastIndexFunc(data[:len(data)-versionLen], func(c rune) bool { return c != 0 }) + 2
		rng := rand.New(rand.NewPCG(2, uint64(len(data))))
		for at := int(r.end); at < len(data); at++ {
			if at == used {
				at = len(data) - versionLen // zeros
			}
			for bit := range 8 {
				if !everyBit && rng.IntN(320/flips()) > 0 {
					continue
				}
				changed := bytes.Clone(data)
				changed[at] ^= 1 << bit
				got, err := dumpAll(changed)
				if err != nil {
					mustBeTyped(t, err)
				} else if got != want {
					t.Fatalf("bit %d of byte %d of the trailer: other answers", bit, at-int(r.end))
				}
			}
		}
	})
}

// TestTruncatedFilesAreRefused cuts files off.
func TestTruncatedFilesAreRefused(t *testing.T) {
	supported(t, func(t *testing.T, g goldenFile, r *Reader) {
		data := g.bytes(t)
		rng := rand.New(rand.NewPCG(3, uint64(len(data))))
		for range 20 {
			_, err := Open(&block.Memory{Bytes: data[:rng.IntN(len(data))]}, ReaderOptions{})
			must.Refuse(t, err)
			mustBeTyped(t, err)
		}
	})
}
