// Package filespec parses the description of a column file to write: one JSON object with the
// options of its writer.
//
//	{"type":"INT64","encoding":"BIT_SHUFFLE","compression":"LZ4","nullable":true,"posidx":true,"append_batch":100}
//
// Names and values are the names and values of Kudu's protobuf messages:
//
//	field                  meaning                                           default
//	type                   of the values                                     required
//	encoding, compression  AUTO_ENCODING, …; DEFAULT_COMPRESSION, …          the type's
//	nullable, array        whether cells may be NULL, are arrays             false
//	checksums              whether cblocks have them                         true
//	posidx, validx         indexes by ordinal, by value                      true, false
//	block_size             of a data cblock, bytes                           0: 256 KiB
//	index_block_size       of an index node, bytes                           0: 32 KiB
//	restart_interval       of prefix encoding, values                        0: 16
//	optimize_index_keys    whether keys of the value index are shortened     true
//	append_batch           rows passed to the writer at once                0, all of them
//	metadata               pairs for the header and the footer               none
//
// A pair is {"where":"header"|"footer","key":…,"value":"0x…"}.
//
// Fields that are not in this list are ignored: a description of a file may contain more than the
// options of its writer.
package filespec

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/internal/jsonin"
	"github.com/oribi-db/oribi/schema"
)

// Spec describes a column file to write.
type Spec struct {
	Options    cfile.WriterOptions // Exact is set
	Footer     []cfile.Pair        // pairs for the footer
	BatchCells int                 // cells passed to the writer at once; 0 = all
}

// Read parses a spec. It also refuses options that contradict each other.
func Read(text []byte) (*Spec, error) {
	value := jsonin.Trim(text)
	if err := jsonin.Check(value); err != nil {
		return nil, err
	}
	if value[0] != '{' {
		return nil, fmt.Errorf("want an object, not %s", jsonin.Kind(value))
	}
	s := &Spec{Options: cfile.WriterOptions{Type: -1, PositionalIndex: true, Exact: true}}
	for w := jsonin.Walk(value); w.Next(); {
		if err := s.field(string(w.Name), w.Value); err != nil {
			return nil, fmt.Errorf("%s: %w", w.Name, err)
		}
	}
	if s.Options.Type < 0 {
		return nil, errors.New(`"type" is missing`)
	}
	return s, s.check()
}

// check refuses options that contradict each other.
func (s *Spec) check() error {
	o := &s.Options
	switch {
	case !o.PositionalIndex && !o.ValueIndex:
		return errors.New("posidx and validx are both false: the file needs an index")
	case o.ValueIndex && !o.Type.Keyable():
		return fmt.Errorf("validx: values of type %s have no order", o.Type)
	case o.ValueIndex && o.Nullable:
		return errors.New("validx: the column is nullable")
	case o.ValueIndex && o.Array:
		return errors.New("validx: the column is one of arrays")
	case !o.Encoding.Allowed(o.Type):
		return fmt.Errorf("encoding: %s does not fit %s", o.Encoding, o.Type)
	}
	return nil
}

// field parses one field.
func (s *Spec) field(name string, value []byte) (err error) {
	o := &s.Options
	switch name {
	case "type":
		o.Type, err = named(value, schema.TypeByName, "type")
	case "encoding":
		o.Encoding, err = named(value, schema.EncodingByName, "encoding")
	case "compression":
		o.Compression, err = named(value, schema.CompressionByName, "compression")
	case "nullable":
		o.Nullable, err = boolean(value)
	case "array":
		o.Array, err = boolean(value)
	case "checksums":
		o.NoChecksums, err = boolean(value)
		o.NoChecksums = !o.NoChecksums
	case "posidx":
		o.PositionalIndex, err = boolean(value)
	case "validx":
		o.ValueIndex, err = boolean(value)
	case "optimize_index_keys":
		o.FullIndexKeys, err = boolean(value)
		o.FullIndexKeys = !o.FullIndexKeys
	case "block_size":
		o.BlockBytes, err = number(value, maxBlockBytes)
	case "index_block_size":
		o.IndexBlockBytes, err = number(value, maxBlockBytes)
	case "restart_interval":
		o.RestartInterval, err = number(value, maxBlockBytes)
	case "append_batch":
		s.BatchCells, err = number(value, math.MaxInt32)
	case "metadata":
		err = s.metadata(value)
	}
	return err
}

// maxBlockBytes is the maximum size of an unpacked cblock that a reader accepts, and so the maximum
// that a spec may request.
const maxBlockBytes = 16 << 20

// named returns the value that a JSON string names.
func named[T any](value []byte, byName func(string) (T, bool), what string) (v T, err error) {
	if value[0] != '"' {
		return v, fmt.Errorf("want a name, not %s", jsonin.Kind(value))
	}
	v, ok := byName(string(jsonin.String(value)))
	if !ok {
		return v, fmt.Errorf("unknown %s %s", what, value)
	}
	return v, nil
}

func boolean(value []byte) (bool, error) {
	if value[0] != 't' && value[0] != 'f' {
		return false, fmt.Errorf("want true or false, not %s", jsonin.Kind(value))
	}
	return value[0] == 't', nil
}

// number parses an integer from 0 to most.
func number(value []byte, most int) (int, error) {
	n, err := strconv.Atoi(string(value))
	if err != nil || n < 0 || n > most {
		return 0, fmt.Errorf("want an integer from 0 to %d, not %.40s", most, value)
	}
	return n, nil
}

// metadata parses the list of pairs.
func (s *Spec) metadata(value []byte) error {
	if value[0] != '[' {
		return fmt.Errorf("want an array, not %s", jsonin.Kind(value))
	}
	for w := jsonin.Walk(value); w.Next(); {
		if w.Value[0] != '{' {
			return fmt.Errorf("want objects, not %s", jsonin.Kind(w.Value))
		}
		if err := s.pair(w.Value); err != nil {
			return err
		}
	}
	return nil
}

func (s *Spec) pair(object []byte) error {
	texts := map[string]string{}
	for w := jsonin.Walk(object); w.Next(); {
		if w.Value[0] == '"' {
			texts[string(w.Name)] = string(jsonin.String(w.Value))
		}
	}
	key, ok := texts["key"]
	if !ok {
		return errors.New(`a pair has no "key"`)
	}
	digits, ok := strings.CutPrefix(texts["value"], "0x")
	if !ok {
		return fmt.Errorf(`pair %q: want a "value" as "0x…"`, key)
	}
	data, err := hex.DecodeString(digits)
	if err != nil {
		return fmt.Errorf("pair %q: the value is not hex with two digits per byte", key)
	}
	switch texts["where"] {
	case "header":
		s.Options.HeaderMetadata = append(s.Options.HeaderMetadata, cfile.Pair{Key: key, Value: data})
	case "footer":
		s.Footer = append(s.Footer, cfile.Pair{Key: key, Value: data})
	default:
		return fmt.Errorf(`pair %q: "where" is "header" or "footer"`, key)
	}
	return nil
}
