package hfilecmd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"slices"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/hfilelines"
	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
	"github.com/oribi-db/oribi/cmd/oribi/internal/verb"
	"github.com/oribi-db/oribi/hfile"
)

// Info is the verb "oribi hfile info".
func Info(a *console.Console) *cobra.Command {
	var flags hfileFlags
	c := verb.New(a, "info FILE", "Describe an HFile: trailer, file info, blocks, index, filters",
		func(cmd *cobra.Command, args []string) error {
			form, err := flags.check(a)
			if err != nil {
				return err
			}
			return With(cmd.Context(), a, args[0], func(r *hfile.Reader) error {
				d := &hfileDescriber{a: a, ctx: cmd.Context(), form: form, r: r}
				parts := []func() error{d.trailer, d.fileInfo, d.blocks, d.index, d.metaBlocks, d.blooms}
				if flags.hudi(r) {
					parts = []func() error{d.hudiTrailer, d.fileInfo, d.dataBlocks, d.hudiMetaBlocks}
				}
				return d.all(parts)
			})
		})
	flags.add(c)
	return c
}

// hfileDescriber prints the lines of "hfile info".
type hfileDescriber struct {
	a    *console.Console
	ctx  context.Context
	form output.Format
	r    *hfile.Reader

	out     *console.Objects
	section string // that out prints, in forms with columns
}

// sectionColumns are the columns of each section in tables and in CSV.
var sectionColumns = map[string][]string{
	"file_info": {"key", "value"},
	"block": {"offset", "type", "size", "uncompressed", "prev", "checksum_type", "bytes_per_checksum",
		"data_size", "payload_sha256"},
	"data_block": {"offset", "size", "index_key", "uncompressed", "payload_sha256"},
	"index":      {"depth", "offset", "size", "key"},
	"mid_key":    {"key"},
	"meta":       {"name", "offset", "size", "found", "length", "sha256"},
	"bloom":      {"kind", "type", "param", "total_bytes", "hash_type", "keys", "max_keys", "chunks", "comparator"},
}

// numberColumns are those that contain numbers.
var numberColumns = []string{"offset", "size", "uncompressed", "prev", "checksum_type",
	"bytes_per_checksum", "data_size", "depth",
	"length", "param", "total_bytes", "hash_type", "keys", "max_keys", "chunks"}

// all prints all parts and then checks the rest of the file.
func (d *hfileDescriber) all(parts []func() error) error {
	err := d.parts(parts)
	if err == nil {
		err = d.r.Verify(d.ctx)
	}
	if d.out == nil {
		return err
	}
	return console.Ended(err, d.out)
}

func (d *hfileDescriber) parts(parts []func() error) error {
	for _, part := range parts {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// print prints a line of a section. As a table and as CSV each section has columns of its own, and
// an empty line before it.
func (d *hfileDescriber) print(section string, f *console.Fields) error {
	if err := d.ctx.Err(); err != nil {
		return err
	}
	if d.form == output.JSON || d.form == output.JSONL {
		if d.out == nil {
			d.out = d.a.Objects(d.form, nil)
		}
		line := console.Fields{}
		line.Text("section", section)
		line.Names, line.Values = append(line.Names, f.Names...), append(line.Values, f.Values...)
		return d.out.Print(line.AppendJSON(nil))
	}
	if section == "trailer" {
		return d.a.PrintFields(f, d.form)
	}
	if section != d.section {
		if d.out != nil {
			if err := d.out.Close(); err != nil {
				return err
			}
		}
		if err := d.a.Printf("\n%s\n", section); err != nil {
			return err
		}
		d.section, d.out = section, d.a.Objects(d.form, console.TextColumns(numberColumns, sectionColumns[section]...))
	}
	return d.out.Print(f.AppendJSON(nil))
}

// addBytes adds a byte string.
func addBytes(f *console.Fields, name string, value []byte) {
	f.JSON(name, hfilelines.AppendBytes(nil, value))
}

func (d *hfileDescriber) trailer() error {
	f := d.trailerFields(hbaseComparator(d.r.Trailer().Comparator), d.r.Trailer().Codec.String())
	f.Plain("encrypted", false) // else the file does not open
	return d.print("trailer", f)
}

func (d *hfileDescriber) hudiTrailer() error {
	codec := d.r.Trailer().Codec.String()
	if codec == hfile.GZ.String() {
		codec = "GZIP" // Hudi's name
	}
	return d.print("trailer", d.trailerFields(d.r.Trailer().Comparator, codec))
}

func (d *hfileDescriber) trailerFields(comparator, codec string) *console.Fields {
	t, f := d.r.Trailer(), new(console.Fields)
	f.Add("major", t.Major, "minor", t.Minor, "file_info_offset", t.FileInfoOffset,
		"load_on_open_offset", t.LoadOnOpenOffset, "uncompressed_data_index_size", t.IndexBytes,
		"total_uncompressed_bytes", t.UncompressedBytes, "data_index_count", t.DataIndexCount,
		"meta_index_count", t.MetaIndexCount, "entry_count", t.EntryCount,
		"num_data_index_levels", t.IndexLevels, "first_data_block_offset", t.FirstDataBlock,
		"last_data_block_offset", t.LastDataBlock, "comparator", comparator, "codec", codec)
	return f
}

// hbaseComparator returns the class to which HBase 2.6 maps the name of a comparator.
func hbaseComparator(name string) string {
	const prefix = "org.apache.hadoop.hbase."
	switch name {
	case "", prefix + "KeyValue$KeyComparator", prefix + "KeyValue$KVComparator", prefix + "CellComparator",
		prefix + "KeyValue$RawBytesComparator", prefix + "util.Bytes$ByteArrayComparator":
		return prefix + "InnerStoreCellComparator"
	case prefix + "KeyValue$MetaKeyComparator", prefix + "KeyValue$MetaComparator",
		prefix + "CellComparator$MetaCellComparator",
		prefix + "CellComparatorImpl$MetaCellComparator":
		return prefix + "MetaCellComparator"
	}
	return name
}

func (d *hfileDescriber) fileInfo() error {
	entries := slices.SortedFunc(slices.Values(d.r.FileInfo()), func(a, b hfile.InfoEntry) int {
		return bytes.Compare(a.Key, b.Key)
	})
	for _, e := range entries {
		f := new(console.Fields)
		addBytes(f, "key", e.Key)
		addBytes(f, "value", e.Value)
		if err := d.print("file_info", f); err != nil {
			return err
		}
	}
	return nil
}

func (d *hfileDescriber) blocks() error {
	for b, err := range d.r.Blocks() {
		if err != nil {
			return err
		}
		f := new(console.Fields)
		f.Add("offset", b.Offset, "type", hbaseBlockTypes[b.Type], "size", b.Size,
			"uncompressed", b.UncompressedSize, "prev", b.PrevOffset, "checksum_type", uint8(b.Checksum),
			"bytes_per_checksum", b.BytesPerChecksum, "data_size", b.DataSize,
			"payload_sha256", hexSum(b.Payload))
		if err := d.print("block", f); err != nil {
			return err
		}
	}
	return nil
}

// hbaseBlockTypes are HBase's names of blocks, by their magic.
var hbaseBlockTypes = map[string]string{
	"DATABLK*": "DATA", "DATABLKE": "ENCODED_DATA", "IDXLEAF2": "LEAF_INDEX",
	"IDXINTE2": "INTERMEDIATE_INDEX", "IDXROOT2": "ROOT_INDEX",
	"METABLKc": "META", "FILEINF2": "FILE_INFO", "BLMFBLK2": "BLOOM_CHUNK", "BLMFMET2": "GENERAL_BLOOM_META",
	"DFBLMET2": "DELETE_FAMILY_BLOOM_META",
}

// dataBlocks prints the data blocks in the order of the index, which is their order in the file.
func (d *hfileDescriber) dataBlocks() error {
	next, stop := iter.Pull2(d.r.Blocks())
	defer stop()
	for e, err := range d.r.IndexEntries() {
		if err != nil {
			return err
		}
		if e.Depth+1 < d.r.Trailer().IndexLevels {
			continue
		}
		b, err, ok := next()
		for ok && err == nil && b.Offset < e.Offset {
			b, err, ok = next()
		}
		if err != nil {
			return err
		}
		if !ok || b.Offset != e.Offset {
			return d.r.Verify(d.ctx) // which names the entry that does not point to a block
		}
		f := new(console.Fields)
		f.Add("offset", e.Offset, "size", e.Size)
		addBytes(f, "index_key", indexRow(e.Key))
		f.Add("uncompressed", b.UncompressedSize, "payload_sha256", hexSum(b.Payload))
		if err := d.print("data_block", f); err != nil {
			return err
		}
	}
	return nil
}

func hexSum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// indexKey returns the key of an index entry as JSON. Some files of Hudi have shortened keys in the
// index, which are printed as bytes: {"short":"…"}.
func indexKey(raw []byte) []byte {
	k, ok := hfile.ParseKey(raw)
	if !ok {
		return append(hfilelines.AppendBytes([]byte(`{"short":`), raw), '}')
	}
	return hfilelines.AppendKey(nil, &k, 0)
}

// indexRow returns the row of an index entry's key, also if the key ends after the row.
func indexRow(raw []byte) []byte {
	if k, ok := hfile.ParseKey(raw); ok {
		return k.Row
	}
	const lengthLen = 2
	return raw[min(len(raw), lengthLen):]
}

func (d *hfileDescriber) index() error {
	if d.r.Trailer().DataIndexCount == 0 {
		return nil
	}
	for e, err := range d.r.IndexEntries() {
		if err != nil {
			return err
		}
		f := new(console.Fields)
		f.Add("depth", e.Depth, "offset", e.Offset, "size", e.Size)
		f.JSON("key", indexKey(e.Key))
		if err := d.print("index", f); err != nil {
			return err
		}
	}
	mid, err := d.r.MidKey()
	if err != nil {
		return err
	}
	f := new(console.Fields)
	if mid != nil {
		f.JSON("key", indexKey(mid))
	}
	return d.print("mid_key", f)
}

func (d *hfileDescriber) metaBlocks() error { return d.meta(d.r.MetaEntries(), true) }

// hudiMetaBlocks prints them in the order of names, as Hudi keeps them.
func (d *hfileDescriber) hudiMetaBlocks() error {
	entries := slices.SortedFunc(slices.Values(d.r.MetaEntries()), func(a, b hfile.IndexEntry) int {
		return bytes.Compare(a.Key, b.Key)
	})
	return d.meta(entries, false)
}

func (d *hfileDescriber) meta(entries []hfile.IndexEntry, hbase bool) error {
	for _, e := range entries {
		content, _, err := d.r.Meta(string(e.Key))
		if err != nil {
			return err
		}
		f := new(console.Fields)
		addBytes(f, "name", e.Key)
		f.Add("offset", e.Offset, "size", e.Size)
		if hbase {
			f.Plain("found", true) // HBase itself misses some of a file of Hudi
		}
		f.Add("length", len(content), "sha256", hexSum(content))
		if err := d.print("meta", f); err != nil {
			return err
		}
	}
	return nil
}

func (d *hfileDescriber) blooms() error {
	p, err := newHFileProber(d.r)
	if err != nil {
		return err
	}
	for _, b := range []struct {
		kind   string
		filter *hfile.BloomFilter
	}{{"general", p.general}, {"delete_family", p.deleteFamily}} {
		if b.filter == nil {
			continue
		}
		i, f := b.filter.Info(), new(console.Fields)
		f.Add("kind", b.kind, "type", i.Kind.String())
		if i.PrefixBytes > 0 {
			f.Plain("param", i.PrefixBytes)
		}
		f.Add("total_bytes", i.Bytes, "hash_type", uint8(i.Hash), "keys", i.Keys, "max_keys", i.Capacity,
			"chunks", i.Chunks)
		comparator := i.Comparator
		if comparator != "" {
			comparator = hbaseComparator(comparator)
		}
		f.Text("comparator", comparator)
		if err := d.print("bloom", f); err != nil {
			return err
		}
	}
	return nil
}
