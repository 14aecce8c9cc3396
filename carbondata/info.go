package carbondata

import (
	"encoding/hex"
	"fmt"
	"maps"
	"math/bits"
	"path/filepath"
	"slices"
	"strings"

	"github.com/oribi-db/oribi/carbondata/internal/codec"
)

// Info describes a table. Offsets and sizes are bytes.
type Info struct {
	Rows        int64    `json:"rows"`         // without deleted rows
	DeletedRows int64    `json:"deleted_rows"` // in data files
	Blocklets   int      `json:"blocklets"`
	Pages       int      `json:"pages"`       // groups of rows, not of one column
	Writers     []string `json:"writers"`     // versions; "": a file does not say
	Compressors []string `json:"compressors"` // "": Snappy, in old files
	// encodings joined by +, then / and the store type if a codec has it, as "adaptive/byte"; ""
	// for no encoding
	Encodings []string        `json:"encodings"`
	Features  []string        `json:"features"` // is_sort, local_dictionary, minmax_absent, null_bits, rle, row_ids
	Columns   []ColumnInfo    `json:"columns"`  // of the table
	Segments  []SegmentInfo   `json:"segments,omitempty"`
	Files     []DataFileInfo  `json:"data_files"`
	Indexes   []IndexFileInfo `json:"index_files"`
}

// ColumnInfo describes a column of a table.
type ColumnInfo struct {
	Name string `json:"name"`
	Type string `json:"type"`
	Sort bool   `json:"sort"`
}

// SegmentInfo describes a segment of a transactional table.
type SegmentInfo struct {
	Name    string `json:"name"`
	Status  string `json:"status"`
	Visible bool   `json:"visible"` // its rows are in the table
	Path    string `json:"path,omitempty"`
	Files   int    `json:"files"`
	Rows    int64  `json:"rows"` // without deleted rows
}

// DataFileInfo describes a data file.
type DataFileInfo struct {
	File         string            `json:"file"` // without its directory
	Segment      string            `json:"segment,omitempty"`
	Size         int64             `json:"size"`
	Version      int               `json:"version"`
	HeaderBytes  int64             `json:"header_bytes"`
	FooterOffset int64             `json:"footer_offset"`
	Rows         int64             `json:"num_rows"`
	DeletedRows  int64             `json:"deleted_rows"`
	Sorted       *bool             `json:"is_sort"` // nil: the file does not say
	Extra        map[string]string `json:"extra_info"`
	SegmentInfo  CardinalityInfo   `json:"segment_info"`
	Columns      []FileColumnInfo  `json:"columns"` // in the order of the file, children after their parent
	Blocklets    []BlockletInfo    `json:"blocklets"`
}

// CardinalityInfo says how many columns there are, and how many values each dimension has in old
// files: -1 without dictionary.
type CardinalityInfo struct {
	Columns       int   `json:"num_cols"`
	Cardinalities []int `json:"cardinalities"`
}

// FileColumnInfo describes a column in the header of a data file.
type FileColumnInfo struct {
	Name      string   `json:"name"` // with the names of its parents
	Type      string   `json:"type"`
	Dimension bool     `json:"dimension"`
	Sort      bool     `json:"sort"`
	Ordinal   int      `json:"ordinal"`
	Children  int      `json:"children"`
	Encoders  []string `json:"encoders"`
}

// BlockletInfo describes a blocklet.
type BlockletInfo struct {
	Rows          int         `json:"rows"`
	Pages         int         `json:"pages"`
	PageRows      []int       `json:"page_rows"` // nil: the file does not say
	DimensionsEnd int64       `json:"dimensions_end"`
	MeasuresEnd   int64       `json:"measures_end"`
	Columns       []ChunkInfo `json:"columns"`
}

// ChunkInfo describes a column of a blocklet.
type ChunkInfo struct {
	Name       string `json:"name"`
	Offset     int64  `json:"offset"`
	Header     int    `json:"header"` // bytes
	Compressor string `json:"compressor"`
	Min        string `json:"min"` // hex, as stored
	Max        string `json:"max"`
	// the bounds are true; nil if the file does not say
	Present *bool `json:"present"`
	// of the Go type that Type gives; nil for NULL, or if not usable
	MinValue        any         `json:"-"`
	MaxValue        any         `json:"-"`
	Nulls           int         `json:"nulls,omitempty"`
	LocalDictionary int         `json:"local_dictionary,omitempty"` // values
	RowIDBytes      int         `json:"rowid_bytes,omitempty"`
	RunBytes        int         `json:"rle_bytes,omitempty"`
	Codecs          []CodecInfo `json:"codecs"`
}

// CodecInfo describes consecutive pages of a column.
type CodecInfo struct {
	Pages    int    `json:"pages"`
	Encoders string `json:"encoders"` // joined by +
	Store    string `json:"store,omitempty"`
}

// IndexFileInfo describes an index file.
type IndexFileInfo struct {
	File        string           `json:"file"`             // without its directory
	Merged      string           `json:"merged,omitempty"` // the merged index file that contains it
	Size        int              `json:"size"`
	Version     int              `json:"version"`
	Columns     int              `json:"columns"`
	SegmentInfo CardinalityInfo  `json:"segment_info"`
	Bucket      int              `json:"bucket_id"`
	Sorted      *bool            `json:"is_sort"`
	SchemaTime  bool             `json:"has_schema_time"`
	Entries     []IndexEntryInfo `json:"entries"`
}

// IndexEntryInfo describes an entry of an index file, one blocklet of a data file.
type IndexEntryInfo struct {
	Rows     int64  `json:"num_rows"` // of the data file
	File     string `json:"file_name"`
	Footer   int64  `json:"offset"`
	FileSize int64  `json:"file_size,omitempty"`
	Blocklet bool   `json:"blocklet_info"` // with a copy of the footer's BlockletInfo3
}

var encodingNames = map[encoding]string{encDictionary: "DICTIONARY", 1: "DELTA", encRLE: "RLE",
	encInvertedIndex: "INVERTED_INDEX", 4: "BIT_PACKED", 5: "DIRECT_DICTIONARY",
	encDirectCompress: "DIRECT_COMPRESS", encAdaptive: "ADAPTIVE_INTEGRAL", encAdaptiveDelta: "ADAPTIVE_DELTA_INTEGRAL",
	9: "RLE_INTEGRAL", 10: "DIRECT_STRING",
	encAdaptiveFloat: "ADAPTIVE_FLOATING", 12: "BOOL_BYTE", encAdaptiveFloatDel: "ADAPTIVE_DELTA_FLOATING",
	encVarchar:        "DIRECT_COMPRESS_VARCHAR",
	encIntLengthChild: "INT_LENGTH_COMPLEX_CHILD_BYTE_ARRAY"}

func (e encoding) String() string {
	if name, ok := encodingNames[e]; ok {
		return name
	}
	return fmt.Sprintf("encoding %d", int(e))
}

func encodingList(list []encoding) []string {
	names := make([]string, len(list))
	for i, e := range list {
		names[i] = e.String()
	}
	return names
}

var internalNames = [...]string{"STRING", "DATE", "TIMESTAMP", "BOOLEAN", "SHORT", "INT", "FLOAT", "LONG", "DOUBLE",
	"NULL", "DECIMAL", "ARRAY", "STRUCT", "MAP", "BYTE",
	"BYTE_ARRAY", "SHORT_INT", "LEGACY_LONG", "VARCHAR", "BINARY"}

func (t internalType) String() string {
	if int(t) < len(internalNames) {
		return internalNames[t]
	}
	return fmt.Sprintf("type %d", int(t))
}

// infoSums are the facts of Info that are about all files.
type infoSums struct{ writers, compressors, encodings, features map[string]bool }

// Info reads the headers of all column chunks and the index files. Errors: ErrCorrupt,
// ErrUnsupported, errors of package os.
//
// Memory: the result has some hundreds of bytes for each column of a blocklet.
func (t *Table) Info() (Info, error) {
	info, err := t.info()
	if err != nil {
		return Info{}, fmt.Errorf("carbondata: %w", err)
	}
	return info, nil
}

func (t *Table) info() (info Info, err error) {
	sums := infoSums{map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}}
	segments := map[string]*SegmentInfo{}
	for _, s := range t.segments {
		info.Segments = append(info.Segments,
			SegmentInfo{Name: s.Name, Status: s.Status, Visible: s.shown, Path: s.Path})
	}
	for i := range info.Segments {
		if s := &info.Segments[i]; s.Visible {
			segments[s.Name] = s
		}
	}
	for _, c := range t.columns {
		info.Columns = append(info.Columns, ColumnInfo{c.Name, c.TypeName(), c.Sort})
	}
	for i := range t.files {
		f := &t.files[i]
		d, err := f.info(&sums)
		if err != nil {
			return info, inside(err, "%s", f.path)
		}
		info.Files = append(info.Files, d)
		info.Rows += d.Rows - d.DeletedRows
		info.DeletedRows += d.DeletedRows
		if s := segments[f.segment]; s != nil {
			s.Files++
			s.Rows += d.Rows - d.DeletedRows
		}
		info.Blocklets += len(d.Blocklets)
		for _, b := range d.Blocklets {
			info.Pages += b.Pages
		}
	}
	for _, path := range t.indexes {
		files, err := readIndex(path)
		if err != nil {
			return info, inside(err, "%s", path)
		}
		for i := range files {
			info.Indexes = append(info.Indexes, files[i].info(path))
		}
	}
	info.Writers, info.Compressors = slices.Sorted(maps.Keys(sums.writers)), slices.Sorted(maps.Keys(sums.compressors))
	info.Encodings, info.Features = slices.Sorted(maps.Keys(sums.encodings)), slices.Sorted(maps.Keys(sums.features))
	return info, nil
}

func (s segmentInfo) info() CardinalityInfo {
	return CardinalityInfo{s.columns, append([]int{}, s.cardinalities...)}
}

// flag returns a flag that a file may not have.
func flag(v, known bool) *bool {
	if !known {
		return nil
	}
	return &v
}

func (i *indexFile) info(path string) IndexFileInfo {
	info := IndexFileInfo{File: filepath.Base(path), Size: i.size, Version: version3, Columns: i.header.columns,
		SegmentInfo: i.header.segment.info(), Bucket: i.header.bucket,
		Sorted: flag(i.header.sorted, i.header.hasSorted), SchemaTime: i.header.hasTime}
	if i.name != "" {
		info.File, info.Merged = i.name, info.File
	}
	for _, e := range i.entries {
		info.Entries = append(info.Entries, IndexEntryInfo{e.rows, e.name, e.footer, e.size, e.blocklet != nil})
	}
	return info
}

// flatten appends c and its children, with their full names.
func flatten(list []*Column, names []string, c *Column, name string) ([]*Column, []string) {
	list, names = append(list, c), append(names, name)
	for i := range c.Children {
		child := &c.Children[i]
		list, names = flatten(list, names, child, name+"."+child.Name)
	}
	return list, names
}

// info describes a file and adds to sums.
func (f *tableFile) info(sums *infoSums) (d DataFileInfo, err error) {
	d = DataFileInfo{File: f.name, Segment: f.segment, Size: f.src.Size(), Version: version3, HeaderBytes: f.headerEnd,
		FooterOffset: f.footer, Rows: f.File.rows,
		Sorted: flag(f.sorted, f.hasSorted), Extra: maps.Clone(f.extra), SegmentInfo: f.File.segment.info()}
	if d.Extra == nil {
		d.Extra = map[string]string{}
	}
	for _, rows := range f.deleted {
		d.DeletedRows += int64(len(rows))
	}
	sums.writers[f.extra["version"]] = true
	if f.sorted {
		sums.features["is_sort"] = true
	}
	var columns []*Column
	var names []string
	for i := range f.File.columns {
		c := &f.File.columns[i]
		columns, names = flatten(columns, names, c, c.Name)
	}
	for i, c := range columns {
		typ := c.inFile().Type.String()
		if c.Type == Decimal {
			typ = c.inFile().TypeName()
		}
		d.Columns = append(d.Columns, FileColumnInfo{names[i], typ, c.dimension, c.Sort, c.Ordinal,
			len(c.Children), encodingList(c.encoders)})
	}
	left := memory{left: f.memoryLimit()}
	for n := range f.blocklets {
		b := &f.blocklets[n]
		info := BlockletInfo{Rows: b.rows, Pages: b.pages, PageRows: b.pageRows,
			DimensionsEnd: b.dimensions, MeasuresEnd: b.measures}
		if b.noPageRows {
			info.PageRows = nil
		}
		for i := range columns {
			c, err := f.chunkInfo(b, i, sums, &left)
			if err != nil {
				return d, inside(err, "blocklet %d: column %q", n, names[i])
			}
			c.Name = names[i]
			if lo, hi, present := b.bounds.of(i); present {
				c.MinValue, c.MaxValue = columns[i].boundOrNull(lo), columns[i].boundOrNull(hi)
			}
			info.Columns = append(info.Columns, c)
		}
		d.Blocklets = append(d.Blocklets, info)
	}
	return d, nil
}

// boundOrNull returns a minimum or maximum as a value. It returns nil if the bound is a stored
// NULL, a date that only the Julian calendar has, or cannot be used.
func (c *Column) boundOrNull(b []byte) any {
	v, usable := c.boundValue(b)
	if !usable || v == nullText || v == Days(dateNull-dateZero) {
		return nil
	}
	if v, err := gregorian(v); err == nil {
		return v
	}
	return nil
}

// chunkInfo describes column i of a blocklet. left limits the bits of nulls and dictionaries that
// it decompresses, for all columns of a file together: else that could take quadratic time.
func (f *File) chunkInfo(b *blocklet, i int, sums *infoSums, left *memory) (info ChunkInfo, err error) {
	m := memory{left: f.memoryLimit()}
	c, err := f.readChunk(b, i, &m)
	if err != nil {
		return info, err
	}
	info = ChunkInfo{Offset: b.offsets[i], Header: b.lengths[i]}
	lo, hi, present := b.bounds.of(i)
	info.Min, info.Max, info.Present = hex.EncodeToString(lo), hex.EncodeToString(hi),
		flag(present, b.bounds.present != nil)
	if b.bounds.present != nil && !present {
		sums.features["minmax_absent"] = true
	}
	if c.dictionary != nil && len(c.pages) > 0 {
		used, err := codec.Decompress(nil, c.pages[0].compressor, c.dictionary.values, min(maxSurrogate/8+1, left.left))
		if err == nil {
			err = left.take(len(used))
		}
		if err != nil {
			return info, inside(err, "dictionary")
		}
		for _, byte := range used {
			info.LocalDictionary += bits.OnesCount8(byte)
		}
		sums.features["local_dictionary"] = true
	}
	for p := range c.pages {
		h := &c.pages[p]
		info.Compressor = h.compressor
		sums.compressors[h.compressor] = true
		info.RowIDBytes += h.rowIDs
		info.RunBytes += h.runs
		if len(h.nulls) > 0 {
			nulls, err := codec.Decompress(nil, h.compressor, h.nulls, left.left)
			if err == nil {
				err = left.take(len(nulls))
			}
			if err != nil {
				return info, inside(err, "page %d: null bits", p)
			}
			for _, byte := range nulls {
				info.Nulls += bits.OnesCount8(byte)
			}
		}
		codec := CodecInfo{Pages: 1, Encoders: strings.Join(encodingList(h.encoders), "+")}
		if h.meta != nil {
			m, err := parseEncoderMeta(h.meta)
			if err != nil {
				return info, inside(err, "page %d", p)
			}
			codec.Store = m.store.String()
		}
		if last := len(info.Codecs) - 1; last >= 0 && info.Codecs[last].Encoders == codec.Encoders &&
			info.Codecs[last].Store == codec.Store {
			info.Codecs[last].Pages++
		} else {
			info.Codecs = append(info.Codecs, codec)
		}
		if codec.Store != "" {
			codec.Encoders += "/" + codec.Store
		}
		sums.encodings[codec.Encoders] = true
	}
	for feature, has := range map[string]bool{"null_bits": info.Nulls > 0, "rle": info.RunBytes > 0,
		"row_ids": info.RowIDBytes > 0} {
		if has {
			sums.features[feature] = true
		}
	}
	return info, nil
}
