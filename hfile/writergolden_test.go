package hfile

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/must"
)

// writtenFile is a line of the golden manifest with the options of the writer.
type writtenFile struct {
	goldenFile
	Writer           string `json:"writer"`
	Via              string `json:"via"`
	Encoding         string `json:"encoding"`
	Checksum         string `json:"checksum"`
	Comparator       string `json:"comparator"`
	Bloom            string `json:"bloom"`
	BloomHash        string `json:"bloom_hash"`
	BloomBlockSize   int    `json:"bloom_block_size"`
	PrefixLength     int    `json:"prefix_length"`
	BlockSize        int    `json:"block_size"`
	BytesPerChecksum int    `json:"bytes_per_checksum"`
	IndexBlockMax    int    `json:"index_block_max"`
	IndexMinEntries  int    `json:"index_min_entries"`
	CodecBuffer      int    `json:"codec_buffer"`
	Major            int    `json:"major"`
	MVCC             *bool  `json:"mvcc"` // absent: true
	Tags             bool   `json:"tags"`
	TagsCompressed   bool   `json:"tags_compressed"`
}

func writtenFiles(t *testing.T) (files []writtenFile) {
	dir := filepath.Join(corpustest.Dir(t), "golden", "hfile")
	for _, line := range corpustest.Lines(t, filepath.Join(dir, "manifest.jsonl")) {
		var g writtenFile
		must.Do(t, json.Unmarshal([]byte(line), &g))
		g.dir = filepath.Join(dir, filepath.Dir(g.Name))
		files = append(files, g)
	}
	return files
}

// options returns the options that make a Writer write the file.
func (g *writtenFile) options(t *testing.T) WriterOptions {
	o := WriterOptions{
		BlockBytes:       g.BlockSize,
		BytesPerChecksum: g.BytesPerChecksum,
		IndexBlockBytes:  g.IndexBlockMax,
		IndexMinEntries:  g.IndexMinEntries,
		CodecBuffer:      g.CodecBuffer,
		Tags:             g.Tags,
		CompressTags:     g.TagsCompressed,
		OmitSequences:    g.MVCC != nil && !*g.MVCC,
		StoreFile:        g.Via == "StoreFileWriter",
		BloomBlockBytes:  g.BloomBlockSize,
		PrefixBytes:      g.PrefixLength,
		Comparator:       g.Comparator,
		MajorVersion:     g.Major,
		CreationTime:     time.UnixMilli(1700000000000),
	}
	find := func(what, name string, values map[string]int) int {
		v, ok := values[name]
		must.Equal(t, ok, true, g.Name, what, name)
		return v
	}
	o.Like = System(find("writer", g.Writer, map[string]int{
		"hbase-2.6.4": int(HBase), "hudi-io-1.2.0": int(Hudi120), "hudi-io-1.1.1": int(Hudi111)}))
	o.Codec = Codec(find("codec", g.Codec, map[string]int{
		"NONE": int(None), "GZ": int(GZ), "GZIP": int(GZ), "SNAPPY": int(Snappy), "LZ4": int(LZ4), "ZSTD": int(Zstd)}))
	o.Encoding = Encoding(find("encoding", g.Encoding, map[string]int{"": 0, "NONE": 0,
		"PREFIX": int(EncodingPrefix), "DIFF": int(EncodingDiff), "FAST_DIFF": int(EncodingFastDiff),
		"ROW_INDEX_V1": int(EncodingRowIndexV1)}))
	o.Checksum = Use(Checksum(find("checksum", g.Checksum, map[string]int{
		"NULL": int(ChecksumNull), "CRC32": int(ChecksumCRC32), "CRC32C": int(ChecksumCRC32C)})))
	if o.Like == HBase {
		o.Bloom = BloomKind(find("Bloom filter", g.Bloom, map[string]int{
			"NONE": int(BloomNone), "ROW": int(BloomRow), "ROWCOL": int(BloomRowCol),
			"ROWPREFIX_FIXED_LENGTH": int(BloomRowPrefix)}))
	}
	if g.BloomHash != "" {
		o.BloomHash = Use(BloomHash(find("hash", g.BloomHash, map[string]int{
			"jenkins": int(Jenkins), "murmur": int(Murmur), "murmur3": int(Murmur3)})))
	}
	return o
}

// goldenText is a byte string in the corpus's texts.
type goldenText []byte

func (b *goldenText) UnmarshalJSON(text []byte) error {
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	if !strings.HasPrefix(s, "0x") {
		*b = []byte(s)
		return nil
	}
	raw, err := hex.DecodeString(s[2:])
	*b = raw
	return err
}

// goldenLine is an entry in the corpus's texts, in either view.
type goldenLine struct {
	Row, Family, Qualifier, Key, Value goldenText
	TS                                 int64
	Type                               string
	MVCC                               int64
	Tags                               []struct {
		Type  uint8
		Value goldenText
	}
}

func (l *goldenLine) cell(t *testing.T) Cell {
	types := map[string]Type{"Put": Put, "Delete": Delete, "DeleteFamilyVersion": DeleteFamilyVersion,
		"DeleteColumn": DeleteColumn, "DeleteFamily": DeleteFamily}
	kind, ok := types[l.Type]
	must.Equal(t, ok, true, l.Type)
	c := Cell{Key: Key{Row: l.Row, Family: l.Family, Qualifier: l.Qualifier, Timestamp: l.TS, Type: kind},
		Value: l.Value, Sequence: l.MVCC}
	for _, tag := range l.Tags {
		c.Tags = AppendTag(c.Tags, Tag{Type: tag.Type, Value: tag.Value})
	}
	return c
}

// rewrite writes the entries of the file with its options. It copies meta blocks, and the entries
// of file info that do not follow from the options, from the file.
func (g *writtenFile) rewrite(t *testing.T) []byte {
	golden := must.Get(g.open(t))(t)
	var out bytes.Buffer
	w := must.Get(NewWriter(&out, g.options(t)))(t)
	for _, name := range golden.MetaNames() {
		content, _, err := golden.Meta(name)
		if err == nil {
			err = w.AddMeta(name, content)
		}
		must.Do(t, err)
	}
	for _, e := range golden.FileInfo() {
		if key := string(e.Key); !strings.HasPrefix(key, infoReservedPrefix) && !w.o.reserved(key) {
			must.Do(t, w.AddInfo(key, e.Value))
		}
	}
	for i, line := range corpustest.Lines(t, filepath.Join(g.dir, g.Values)) {
		var l goldenLine
		err := json.Unmarshal([]byte(line), &l)
		switch {
		case err != nil:
		case w.o.Like == HBase:
			err = w.Append(l.cell(t))
		default:
			err = w.AppendKeyValue(l.Key, l.Value)
		}
		must.Do(t, err, i)
	}
	must.Do(t, w.Finish())
	return out.Bytes()
}

// TestWriterWritesGoldenBytes compares files of codec NONE with those that HBase and Hudi wrote.
func TestWriterWritesGoldenBytes(t *testing.T) {
	compared := 0
	for _, g := range writtenFiles(t) {
		if g.Codec != "NONE" {
			continue
		}
		compared++
		t.Run(g.Name, func(t *testing.T) {
			want, got := g.bytes(t), g.rewrite(t)
			if !bytes.Equal(got, want) {
				at := commonPrefix(got, want)
				t.Errorf("%d bytes, want %d; the first difference is at byte %d:\n got %x\nwant %x", len(got),
					len(want), at,
					got[at:min(len(got), at+64)], want[at:min(len(want), at+64)])
			}
		})
	}
	if compared < 109 {
		t.Errorf("compared %d files", compared)
	}
}

// TestWriterWritesGoldenBlocks compares what compressed files contain with those that HBase and
// Hudi wrote: the codecs of Java make other bytes, and so the offsets in the indexes differ.
func TestWriterWritesGoldenBlocks(t *testing.T) {
	compared := 0
	for _, g := range writtenFiles(t) {
		if g.Codec == "NONE" || g.Codec == "LZO" {
			continue
		}
		compared++
		t.Run(g.Name, func(t *testing.T) {
			want, got := unpackedBlocks(t, g.bytes(t)), unpackedBlocks(t, g.rewrite(t))
			must.Equal(t, len(got), len(want))
			for i := range min(len(got), len(want)) {
				switch {
				case got[i].header.magic != want[i].header.magic:
					t.Fatalf("block %d is %s, want %s", i, got[i].header.magic, want[i].header.magic)
				case got[i].header.uncompressed != want[i].header.uncompressed:
					t.Errorf("block %d, %s: %d bytes, want %d", i, got[i].header.magic,
						got[i].header.uncompressed, want[i].header.uncompressed)
				}
				switch want[i].header.magic {
				case magicData, magicEncodedData, magicMeta, magicBloomChunk, magicFileInfo:
					must.Equal(t, got[i].payload, want[i].payload, i)
				}
			}
		})
	}
	if compared < 73 {
		t.Errorf("compared %d files", compared)
	}
}

// unpackedBlocks returns all blocks of a file.
func unpackedBlocks(t *testing.T, file []byte) (blocks []*loadedBlock) {
	r := must.Get(Open(&block.Memory{Bytes: file}, ReaderOptions{}))(t)
	for at := int64(0); at < r.end; {
		h := must.Get(r.headerAt(at))(t)
		b := must.Get(r.readBlock(at, int32(h.size), h.magic))(t)
		blocks = append(blocks, b)
		at += int64(h.size)
	}
	return blocks
}
