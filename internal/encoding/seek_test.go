package encoding

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// An estimate of where a value is may be exact, near, or far off.
func TestSeekFindsValuesThatAreEvenlySpreadOrNot(t *testing.T) {
	number := func(v uint64) []byte { return binary.BigEndian.AppendUint64([]byte("key"), v) }
	for name, value := range map[string]func(r *rand.Rand, i int) []byte{
		"even":      func(r *rand.Rand, i int) []byte { return number(uint64(i) * 3) },
		"uneven":    func(r *rand.Rand, i int) []byte { return number(uint64(i)*8 + r.Uint64N(200)) },
		"squares":   func(r *rand.Rand, i int) []byte { return number(uint64(i) * uint64(i)) },
		"powers":    func(r *rand.Rand, i int) []byte { return number(1 << (i % 64)) },
		"one apart": func(r *rand.Rand, i int) []byte { return number(uint64(i) + uint64(i/1999)<<60) },
		"same head": func(r *rand.Rand, i int) []byte { return append(make([]byte, 20), byte(i>>8), byte(i)) },
		"prefixes":  func(r *rand.Rand, i int) []byte { return make([]byte, i%300) },
	} {
		t.Run(name, func(t *testing.T) {
			r := seedtest.Rand(t)
			cells := make([][]byte, 2000)
			for i := range cells {
				cells[i] = value(r, i)
			}
			slices.SortFunc(cells, bytes.Compare)
			prefix := mustBuilder(t, BuilderOptions{Type: schema.Binary, Encoding: schema.Prefix,
				BlockBytes: 1 << 20, RestartInterval: 1 + r.IntN(20)})
			payloads, _, _ := buildAll(prefix, schema.Binary, cells, len(cells)+1)
			blocks := []Block{must.Get(parsePrefix(payloads[0]))(t)}
			plain := mustBuilder(t, BuilderOptions{Type: schema.Binary, Encoding: schema.Plain, BlockBytes: 1 << 20})
			payloads, _, _ = buildAll(plain, schema.Binary, cells, len(cells)+1)
			blocks = append(blocks, must.Get(parsePlainBinary(payloads[0], 0, nil))(t))
			for range 500 {
				target := bytes.Clone(cells[r.IntN(len(cells))])
				switch n := r.IntN(len(target) + 1); r.IntN(4) {
				case 0:
					target = target[:n]
				case 1:
					target = append(target, byte(r.IntN(2)))
				case 2:
					if n < len(target) {
						target[n] += byte(r.IntN(3) - 1)
					}
				}
				want, found := slices.BinarySearchFunc(cells, target, bytes.Compare)
				for _, block := range blocks {
					if i, exact, _ := block.Seek(target); i != want || exact != found {
						t.Fatalf("%T: seek %x gives %d, %t; want %d, %t", block, target, i, exact, want, found)
					}
				}
			}
		})
	}
}
