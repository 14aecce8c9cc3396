package hfile

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"testing"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fuzztest"
	"github.com/oribi-db/oribi/internal/must"
)

// bloomSeedFile returns a file with a Bloom filter of two chunks.
func bloomSeedFile(t testing.TB, kind BloomKind) []byte {
	t.Helper()
	sink := &block.Memory{}
	w := must.Get(NewWriter(sink, WriterOptions{Bloom: kind, PrefixBytes: 6, BloomBlockBytes: 128, BlockBytes: 512}))(t)
	for i := range 150 {
		c := Cell{Key: Key{Row: fmt.Appendf(nil, "row-%03d", i), Family: []byte("f"),
			Qualifier: []byte("q"), Timestamp: 1, Type: Put}}
		must.Do(t, w.Append(c))
	}
	must.Do(t, w.Finish())
	return sink.Bytes
}

// FuzzBloomMeta fuzzes the metadata of a compound filter in a file whose chunks are good, the kind
// of filter, and a row to look up. Metadata that is accepted gives the same answer twice.
func FuzzBloomMeta(f *testing.F) {
	sources := map[BloomKind]*block.Memory{}
	for kind := BloomRow; kind <= BloomRowPrefix; kind++ {
		file := bloomSeedFile(f, kind)
		sources[kind] = &block.Memory{Bytes: file}
		r := must.Get(Open(sources[kind], ReaderOptions{}))(f)
		f.Add(uint8(kind), r.blooms[0].payload, []byte("row-077"))
	}
	fuzztest.Run(f, func(t *testing.T, kind uint8, payload, row []byte) {
		src := sources[BloomRow+BloomKind(kind%3)]
		r := must.Get(Open(src, ReaderOptions{}))(t)
		// As if it had been read from a block: checksums do not protect it.
		r.blooms[0].payload = payload
		filter, err := r.Bloom()
		if err != nil {
			mustBeFormatError(t, err)
			return
		}
		checked := filter.Check()
		mustBeFormatError(t, checked)
		answer, err := filter.MayContain(row, []byte("q"))
		mustBeFormatError(t, err)
		if checked == nil && err != nil {
			t.Fatalf("checked, but %v", err)
		}
		again, err2 := filter.MayContain(row, []byte("q"))
		must.Equal(t, answer, again, err, err2)
		must.Equal(t, err == nil, err2 == nil, err, err2)
		mustBeFormatError(t, newBloomVerifier(filter).check(Key{Row: row}))
	})
}

// FuzzHudiBloom fuzzes the bytes of one of Hudi's filters, which reach the parser as valid base64,
// and a key to look up. A filter that is accepted is written as it was read.
func FuzzHudiBloom(f *testing.F) {
	for _, o := range []HudiBloomOptions{{Simple: true, Keys: 10, ErrorRate: 0.1}, {Keys: 2, ErrorRate: 0.1}} {
		filter := must.Get(NewHudiBloom(o))(f)
		for i := range byte(5) {
			filter.Add([]byte{'a' + i})
		}
		f.Add(!o.Simple, filter.b, []byte("c"))
	}
	f.Add(false, []byte{0, 0, 0, 3, 0, 0, 0, 12, 0xff, 0x0f}, []byte("c")) // the oldest form
	fuzztest.Run(f, func(t *testing.T, dynamic bool, b, key []byte) {
		typeCode := hudiBloomSimple
		if dynamic {
			typeCode = hudiBloomDynamic
		}
		text := base64.StdEncoding.AppendEncode(nil, b)
		filter, err := ParseHudiBloom(typeCode, text)
		if err != nil {
			mustBeFormatError(t, err)
			return
		}
		if again, _ := filter.MarshalText(); !bytes.Equal(again, text) || filter.TypeCode() != typeCode {
			t.Fatalf("type %s, %s; was %s, %s", filter.TypeCode(), again, typeCode, text)
		}
		filter.MayContain(key)
		if filter.Add(key); !filter.MayContain(key) {
			t.Fatal("a key is absent after it was added")
		}
		if text, _ := filter.MarshalText(); true {
			if filter, err = ParseHudiBloom(typeCode, text); err != nil || !filter.MayContain(key) {
				t.Fatalf("after writing and reading the key is absent (%v)", err)
			}
		}
	})
}

// mustBeFormatError fails the test if err is neither nil nor one of the errors of bad bytes.
func mustBeFormatError(t *testing.T, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnsupported) {
		t.Fatalf("neither ErrCorrupt nor ErrUnsupported: %v", err)
	}
}
