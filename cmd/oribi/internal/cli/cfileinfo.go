package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/oribi-db/oribi/cfile"
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
func cfileFields(r *cfile.Reader, form output.Format) (*fields, error) {
	l := layout{bytes: map[cfile.CblockKind]int64{}}
	if err := r.Cblocks(l.add); err != nil {
		return nil, err
	}
	i, f := r.Info(), new(fields)
	f.plain("size", i.Bytes)
	f.plain("version", i.Version)
	f.text("type", i.Type.String())
	f.text("encoding", i.Encoding.String())
	f.text("compression", i.Compression.String())
	f.plain("nullable", i.Nullable)
	f.plain("array", i.Array)
	f.plain("checksums", i.Checksums)
	f.plain("num_values", i.Rows)
	f.plain("null_values", l.nulls)
	f.plain("posidx", i.PositionalIndex)
	f.plain("validx", i.ValueIndex)
	if i.PositionalIndex {
		f.plain("posidx_height", l.ordinalHeight)
	}
	if i.ValueIndex {
		f.plain("validx_height", l.valueHeight)
	}
	f.plain("zone_map", i.ZoneMap)
	f.plain("data_blocks", l.blocks)
	if i.Compression != schema.NoCompression && i.Version != 1 {
		f.plain("data_blocks_stored_raw", l.keptRaw)
	}
	if i.Encoding == schema.Dictionary {
		f.plain("dict_words", l.words)
		f.plain("dict_blocks_plain", l.plainWords)
	}
	f.part("bytes", bytesFields(r, &l), form)
	f.json("metadata", metadata(r))
	return f, nil
}

// bytesFields returns the bytes of each part of the file; they add up to its size.
func bytesFields(r *cfile.Reader, l *layout) *fields {
	header, footer := r.Ends()
	f := new(fields)
	f.plain("header", header)
	for _, k := range []struct {
		name string
		kind cfile.CblockKind
	}{{"data", cfile.DataCblock}, {"ordinal_index", cfile.OrdinalIndexCblock}, {"value_index", cfile.ValueIndexCblock},
		{"dictionary", cfile.DictionaryCblock}, {"zone_map", cfile.ZoneMapCblock}} {
		f.plain(k.name, l.bytes[k.kind])
	}
	f.plain("footer", footer)
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
		f := new(fields)
		if i < inHeader {
			f.text("where", "header")
		} else {
			f.text("where", "footer")
		}
		f.text("key", p.Key)
		if len(p.Value) <= mostShown {
			f.text("value", "0x"+hex.EncodeToString(p.Value))
		} else {
			f.plain("value_length", len(p.Value))
			f.text("value_sha256", fmt.Sprintf("%x", sha256.Sum256(p.Value)))
		}
		list = f.appendJSON(list)
	}
	return append(list, ']')
}
