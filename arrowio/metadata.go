package arrowio

import (
	"encoding/json"
	"math"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/schema"
)

// definitionKey is the key of the metadata entry with the definition of the table: in the schema of
// Arrow data, in the footer of a Parquet file. The value is a JSON object, described by stored.
const definitionKey = "oribi.table" // file format: never change

// definitionVersion is the version of the object that this program writes and reads.
const definitionVersion = 1 // file format: never change

// stored is a definition as JSON. A field that is not set has its zero value; unknown ones are
// ignored.
//
//	{"version":1,"key":["id"],"history":604800,"columns":[
//	 {"name":"id","type":"int64"},
//	 {"name":"price","type":"decimal(15,2)","nullable":true,"default":"lgAAAAAAAAA=","encoding":"PLAIN_ENCODING"}]}
type stored struct {
	Version int            `json:"version"`
	Key     []string       `json:"key,omitempty"`
	Comment string         `json:"comment,omitempty"`
	History int64          `json:"history,omitempty"` // seconds; −1 for all
	RowFile *bool          `json:"row_file,omitempty"`
	Expires *storedExpiry  `json:"expires,omitempty"`
	Indexes []storedIndex  `json:"indexes,omitempty"`
	Columns []storedColumn `json:"columns"`
}

type storedIndex struct {
	Name    string   `json:"name"`
	Columns []string `json:"columns"`
	Unique  bool     `json:"unique,omitempty"`
}

type storedExpiry struct {
	Column string `json:"column"`
	Age    int64  `json:"age"` // nanoseconds
}

type storedColumn struct {
	Name          string `json:"name"`
	Type          string `json:"type"` // as in schema files: decimal(15,2), varchar(20), array(int32)
	Nullable      bool   `json:"nullable,omitempty"`
	Immutable     bool   `json:"immutable,omitempty"`
	AutoIncrement bool   `json:"auto_incrementing,omitempty"`
	Default       []byte `json:"default,omitempty"`     // the cell, base64
	Empty         bool   `json:"empty,omitempty"`       // the default is an empty byte string
	Encoding      string `json:"encoding,omitempty"`    // Kudu's name; AUTO_ENCODING if it is not set
	Compression   string `json:"compression,omitempty"` // likewise; DEFAULT_COMPRESSION
	BlockBytes    int32  `json:"block_size,omitempty"`
	Comment       string `json:"comment,omitempty"`
}

// encode returns d as JSON.
func (d *Definition) encode() string {
	s := stored{Version: definitionVersion, Key: d.Key, Comment: d.Comment,
		History: int64(d.History / time.Second), RowFile: d.RowFile.Choice()}
	if d.History == oribi.HistoryForever {
		s.History = -1
	}
	if d.Expires.Column != "" {
		s.Expires = &storedExpiry{d.Expires.Column, int64(d.Expires.Age)}
	}
	for _, x := range d.Indexes {
		s.Indexes = append(s.Indexes, storedIndex{x.Name, x.Columns, x.Unique})
	}
	s.Columns = make([]storedColumn, len(d.Columns))
	for i := range d.Columns {
		c := &d.Columns[i]
		to := storedColumn{Name: c.Name, Type: c.TypeName(), Nullable: c.Nullable, Immutable: c.Immutable,
			AutoIncrement: c.AutoIncrement,
			Default:       c.Default, Empty: c.Default != nil && len(c.Default) == 0,
			BlockBytes: c.BlockBytes, Comment: c.Comment}
		if c.Encoding != schema.Auto {
			to.Encoding = c.Encoding.String()
		}
		if c.Compression != schema.DefaultCompression {
			to.Compression = c.Compression.String()
		}
		s.Columns[i] = to
	}
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // there is no value that JSON does not have
	}
	return string(text)
}

// decode sets d to a definition as encode returns it. Errors: ErrCorrupt; ErrUnsupported for a
// later version.
func (d *Definition) decode(text string) error {
	var s stored
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return corruptf("metadata %q: %v", definitionKey, err)
	}
	if s.Version != definitionVersion {
		return unsupportedf("metadata %q of version %d, want %d", definitionKey, s.Version, definitionVersion)
	}
	if s.History < -1 || s.History > int64(math.MaxInt64/time.Second) {
		return corruptf("metadata %q: a history of %d seconds", definitionKey, s.History)
	}
	*d = Definition{Key: s.Key, Comment: s.Comment, History: time.Duration(s.History) * time.Second,
		RowFile: schema.RowFileOf(s.RowFile), Stored: true}
	if s.History < 0 {
		d.History = oribi.HistoryForever
	}
	if e := s.Expires; e != nil {
		d.Expires = oribi.Expiry{Column: e.Column, Age: time.Duration(e.Age)}
	}
	for _, x := range s.Indexes {
		d.Indexes = append(d.Indexes, oribi.IndexInfo{Name: x.Name, Columns: x.Columns, Unique: x.Unique})
	}
	for _, from := range s.Columns {
		c, err := from.column()
		if err != nil {
			return corruptf("metadata %q: column %q: %v", definitionKey, from.Name, err)
		}
		d.Columns = append(d.Columns, c)
	}
	return nil
}

func (s *storedColumn) column() (schema.Column, error) {
	c := schema.Column{Name: s.Name, Nullable: s.Nullable, Immutable: s.Immutable, AutoIncrement: s.AutoIncrement,
		Default: s.Default, BlockBytes: s.BlockBytes, Comment: s.Comment}
	if s.Empty {
		c.Default = []byte{}
	}
	if err := c.ParseTypeName(s.Type); err != nil {
		return c, err
	}
	ok := true
	if s.Encoding != "" {
		if c.Encoding, ok = schema.EncodingByName(s.Encoding); !ok {
			return c, unsupportedf("encoding %q", s.Encoding)
		}
	}
	if s.Compression != "" {
		if c.Compression, ok = schema.CompressionByName(s.Compression); !ok {
			return c, unsupportedf("compression %q", s.Compression)
		}
	}
	return c, nil
}
