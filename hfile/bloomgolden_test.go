package hfile

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/corpustest"
)

// bloomFile is a line of the corpus manifest, of a file with Bloom filters.
type bloomFile struct {
	Name       string `json:"name"`
	Codec      string `json:"codec"`
	Kind       string `json:"bloom"`
	Hash       string `json:"bloom_hash"`
	BlockBytes int    `json:"bloom_block_size"`
	Prefix     int    `json:"prefix_length"`
	Probes     string `json:"probes"`
}

func bloomFiles(t *testing.T) (dir string, files []bloomFile) {
	dir = filepath.Join(corpustest.Dir(t), "golden", "hfile")
	for _, line := range corpustest.Lines(t, filepath.Join(dir, "manifest.jsonl")) {
		var f bloomFile
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatal(err)
		}
		if f.Probes != "" {
			files = append(files, f)
		}
	}
	if len(files) == 0 {
		t.Fatal("no file of the corpus has Bloom filters")
	}
	return dir, files
}

func (f bloomFile) kind() BloomKind {
	for k := range BloomRowPrefix + 1 {
		if k.String() == f.Kind {
			return k
		}
	}
	return BloomNone
}

func (f bloomFile) hash() BloomHash {
	for h := range Murmur3 {
		if h.String() == f.Hash {
			return h
		}
	}
	return map[string]BloomHash{"": Murmur, "murmur3": Murmur3}[f.Hash]
}

// corpusBytes returns the bytes of a string of the corpus.
func corpusBytes(t *testing.T, s string) []byte {
	if !strings.HasPrefix(s, "0x") {
		return []byte(s)
	}
	b, err := hex.DecodeString(s[2:])
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// goldenPayload returns the payload of the block at an offset of a file with codec NONE or GZ.
func goldenPayload(t *testing.T, file []byte, offset int) []byte {
	b := file[offset:]
	b = b[33:binary.BigEndian.Uint32(b[29:])]
	if len(b) > 2 && b[0] == 0x1f && b[1] == 0x8b {
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		if b, err = io.ReadAll(z); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func TestBloomBuilderMakesHBaseBytes(t *testing.T) {
	dir, files := bloomFiles(t)
	compared := 0
	for _, f := range files {
		if !strings.HasPrefix(f.Name, "hbase/") || f.Codec == "SNAPPY" {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			file := corpustest.Read(t, filepath.Join(dir, f.Name+".hfile"))
			general, err := newBloomBuilder(f.kind(), f.hash(), f.BlockBytes, 0, f.Prefix)
			if err != nil {
				t.Fatal(err)
			}
			deletes, err := newBloomBuilder(BloomRow, f.hash(), f.BlockBytes, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			chunks := map[*bloomBuilder][]bloomChunk{}
			take := func(b *bloomBuilder, closing bool) {
				for b.ready(closing) {
					payload := bytes.Clone(b.takeChunk())
					chunks[b] = append(chunks[b], bloomChunk{bits: payload, first: b.taken.first})
					b.chunkWritten(0, 0)
				}
			}
			for _, line := range corpustest.Lines(t, filepath.Join(dir, f.Name+".jsonl")) {
				var c struct{ Row, Qualifier, Type string }
				if err := json.Unmarshal([]byte(line), &c); err != nil {
					t.Fatal(err)
				}
				k := Key{Row: corpusBytes(t, c.Row), Qualifier: corpusBytes(t, c.Qualifier)}
				if general.add(k); c.Type == "DeleteFamily" || c.Type == "DeleteFamilyVersion" {
					deletes.add(k)
				}
				take(general, false)
			}
			for b, magic := range map[*bloomBuilder]string{general: magicBloomMeta, deletes: magicDeleteFamily} {
				take(b, true)
				at := bytes.Index(file, []byte(magic))
				if at < 0 {
					if b.meta() != nil {
						t.Errorf("%s: HBase has no such block", magic)
					}
					continue
				}
				compared++
				want := goldenPayload(t, file, at)
				m, index, err := parseBloomMeta(want)
				if err != nil {
					t.Fatal(err)
				}
				if int(m.chunks) != len(chunks[b]) {
					t.Fatalf("%s: %d chunks, HBase has %d", magic, len(chunks[b]), m.chunks)
				}
				b.index, b.chunks = nil, 0 // with HBase's offsets
				for i := range chunks[b] {
					offset, size := int64(binary.BigEndian.Uint64(index)), int32(binary.BigEndian.Uint32(index[8:]))
					length, n := vint(index[12:])
					if payload := goldenPayload(t, file, int(offset)); !bytes.Equal(chunks[b][i].bits, payload) {
						t.Errorf("%s: chunk %d of %d bytes differs from HBase's %d", magic, i, len(chunks[b][i].bits), len(payload))
					}
					b.taken = chunks[b][i]
					b.chunkWritten(offset, size)
					index = index[12+n+int(length):]
				}
				if got := b.meta(); !bytes.Equal(got, want) {
					t.Errorf("%s:\n%x, want\n%x", magic, got, want)
				}
			}
		})
	}
	if compared < 19 {
		t.Errorf("only %d filters were compared", compared)
	}
}
