package cfile

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/fuzztest"
	"github.com/oribi-db/oribi/schema"
)

// FuzzFile reads arbitrary bytes in every way. Each read must succeed or return one of the two
// expected errors; it must not panic, loop forever, or exceed the documented memory bound (with an
// allowance for reallocations and for returned rows).
func FuzzFile(f *testing.F) {
	for _, src := range smallFiles(f) {
		f.Add(src.Bytes)
	}
	// Without checksums, changed bytes are decoded further.
	rng := rand.New(rand.NewPCG(51, 1))
	for _, typ := range []schema.Type{schema.String, schema.Int32, schema.Bool, schema.Double} {
		for _, enc := range allEncodings {
			if enc.Allowed(typ) {
				o := WriterOptions{Type: typ, Encoding: enc, Nullable: true, PositionalIndex: true,
					NoChecksums: true, BlockBytes: 512, IndexBlockBytes: 60}
				f.Add(writeSteps(f, rng, o, randomCells(rng, typ, 200, 0.2)).Bytes)
			}
		}
	}
	fuzztest.Run(f, func(t *testing.T, data []byte) {
		checkFile(t, &block.Memory{Bytes: data})
	})
}

// FuzzPayload parses arbitrary bytes as the payload of a cblock.
func FuzzPayload(f *testing.F) {
	f.Add([]byte("\x04\x00\x00\x00\x00\x10\x29\x00\x00\x00\x00\x08\x01\x10\x00\x04\x00\x00\x00"))
	f.Add([]byte("ORZM\x01\x00\x00\x00\x01\x00\x00\x00\x04\x03\x02\x01" +
		"\x03\x00\x00\x00\x01\x00\x00\x00\x03\x01\x01\x00\x7f\x85"))
	f.Add([]byte{6, 2, 3, 0x19})
	fuzztest.Run(f, func(t *testing.T, data []byte) {
		if n, err := parseNode(data); err == nil {
			for i := range n.count {
				_, _, err := n.entry(i)
				checkKind(t, err)
			}
		} else {
			checkKind(t, err)
		}
		for _, rows := range []int64{0, 3, 1 << 32} {
			for blocks := range 3 {
				_, err := parseZoneMap(data, 8, blocks, rows)
				checkKind(t, err)
			}
		}
		if rows, stream, _, err := splitPrologue(data); err == nil {
			p, err := parsePresence(stream, rows)
			checkKind(t, err)
			if err == nil && rows > 0 {
				p.find(int(rows) - 1)
			}
		}
	})
}

func checkKind(t *testing.T, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, fault.ErrCorrupt) && !errors.Is(err, fault.ErrUnsupported) {
		t.Fatalf("neither ErrCorrupt nor ErrUnsupported: %v", err)
	}
}
