package filecmd

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
	"github.com/oribi-db/oribi/schema"
)

// layout sums up all cblocks of a file.
type layout struct {
	bytes                       map[cfile.CblockKind]int64
	ordinalHeight, valueHeight  int
	blocks, keptRaw, plainWords int
	words, nulls                int64
}

func (l *layout) add(c cfile.Cblock) error {
	l.bytes[c.Kind] += int64(c.Pointer.Size)
	switch c.Kind {
	case cfile.OrdinalIndexCblock:
		l.ordinalHeight = max(l.ordinalHeight, c.Level)
	case cfile.ValueIndexCblock:
		l.valueHeight = max(l.valueHeight, c.Level)
	case cfile.DictionaryCblock:
		l.words = int64(c.Entries)
	case cfile.DataCblock:
		l.blocks++
		l.nulls += int64(c.Nulls)
		if c.KeptRaw {
			l.keptRaw++
		}
		if c.Encoding == schema.Plain {
			l.plainWords++
		}
	}
	return nil
}

// cfileFields returns the fields of "cfile info". Names that "cfile write --spec" accepts mean the
// same here.
func cfileFields(r *cfile.Reader, form output.Format) (*console.Fields, error) {
	l := layout{bytes: map[cfile.CblockKind]int64{}}
	if err := r.Cblocks(l.add); err != nil {
		return nil, err
	}
	i, f := r.Info(), new(console.Fields)
	f.Add("size", i.Bytes, "version", i.Version, "type", i.Type.String(), "encoding", i.Encoding.String(),
		"compression", i.Compression.String(), "nullable", i.Nullable, "array", i.Array,
		"checksums", i.Checksums, "num_values", i.Rows, "null_values", l.nulls, "posidx", i.PositionalIndex,
		"validx", i.ValueIndex)
	if i.PositionalIndex {
		f.Plain("posidx_height", l.ordinalHeight)
	}
	if i.ValueIndex {
		f.Plain("validx_height", l.valueHeight)
	}
	f.Add("zone_map", i.ZoneMap, "data_blocks", l.blocks)
	if i.Compression != schema.NoCompression && i.Version != 1 {
		f.Plain("data_blocks_stored_raw", l.keptRaw)
	}
	if i.Encoding == schema.Dictionary {
		f.Add("dict_words", l.words, "dict_blocks_plain", l.plainWords)
	}
	f.Part("bytes", bytesFields(r, &l), form)
	f.JSON("metadata", metadata(r))
	return f, nil
}

// bytesFields returns the bytes of each part of the file; they add up to its size.
func bytesFields(r *cfile.Reader, l *layout) *console.Fields {
	header, footer := r.Ends()
	f := new(console.Fields)
	f.Plain("header", header)
	for _, k := range []struct {
		name string
		kind cfile.CblockKind
	}{{"data", cfile.DataCblock}, {"ordinal_index", cfile.OrdinalIndexCblock}, {"value_index", cfile.ValueIndexCblock},
		{"dictionary", cfile.DictionaryCblock}, {"zone_map", cfile.ZoneMapCblock}} {
		f.Plain(k.name, l.bytes[k.kind])
	}
	f.Plain("footer", footer)
	return f
}

// mostShown is the maximum length of a pair's value that is printed; of a longer one the length and
// the checksum are printed.
const mostShown = 1 << 10

// metadata returns the list of pairs.
func metadata(r *cfile.Reader) []byte {
	pairs, inHeader := r.Pairs()
	list := []byte{'['}
	for i, p := range pairs {
		if i > 0 {
			list = append(list, ',')
		}
		f := new(console.Fields)
		if i < inHeader {
			f.Text("where", "header")
		} else {
			f.Text("where", "footer")
		}
		f.Text("key", p.Key)
		if len(p.Value) <= mostShown {
			f.Text("value", "0x"+hex.EncodeToString(p.Value))
		} else {
			f.Add("value_length", len(p.Value), "value_sha256", fmt.Sprintf("%x", sha256.Sum256(p.Value)))
		}
		list = f.AppendJSON(list)
	}
	return append(list, ']')
}
