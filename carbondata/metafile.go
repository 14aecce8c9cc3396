package carbondata

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
)

// Transactional table: a folder with the directories Metadata and Fact. Source: carbondata spec
// §2.1, §11.
//
//	Metadata/schema                 a TableInfo: 1 fact_table, a TableSchema, of which
//	                                2 table_columns is a list, see ColumnSchema
//	Metadata/tablestatus            JSON: a list of segments, see segmentStatus; if it is not there,
//	                                tablestatus_<number> of the greatest number
//	Metadata/tableupdatestatus-<t>  JSON: deleted rows, see blockUpdate
//	Metadata/segments/<name>        JSON: index files of a segment, see segmentFile
//	Fact/Part0/Segment_<id>/…       index files and the data files that they name
//	<column>=<value>/…              the same, of a table with partitions; the data files have the
//	                                values of the partition columns too
//
// A segment file may name folders elsewhere, of segments that were added to the table.
//
// The schema file of a table with the ID "i" and the STRING "a":
//
//	1c 18 01 69 19 1c 15 00 18 01 61 18 01 61 11 19 05 11 00 00  00
//
// A tablestatus:
//
//	[{"loadStatus":"Success","loadName":"0","segmentFile":"0_1700000100000.segment"}]
//
// Its segment file:
//
//	{"locationMap":{"/Fact/Part0/Segment_0":{"files":["0_batchno0-0-0-1700000100000.carbonindex"],
//	"partitions":[],"status":"Success","isRelative":true}}}
const (
	schemaName    = "schema"      // file format: never change
	statusName    = "tablestatus" // file format: never change
	segmentsDir   = "segments"    // file format: never change
	factDir       = "Fact"        // file format: never change
	partDir       = "Part0"       // file format: never change
	segmentPrefix = "Segment_"    // file format: never change
	columnarName  = "columnar_v3" // file format: never change

	infoTable    = 1 // fact_table; file format: never change
	tableColumns = 2 // file format: never change
)

// readWhole reads a file that is read at once: an index file, deleted rows, or metadata of a table.
// Errors: errors of package os, and ErrCorrupt for a file that is longer than all such files are.
func readWhole(path string) ([]byte, error) {
	src, err := block.OpenFile(path)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	if src.Size() > math.MaxInt32 {
		return nil, fault.Corruptf("%d bytes", src.Size())
	}
	return readAt(src, 0, int(src.Size()))
}

// unmarshal reads a text in JSON into v. Errors: ErrCorrupt.
func unmarshal(text []byte, v any) error {
	err := json.Unmarshal(text, v)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fault.Corruptf("JSON: byte %d: unexpected %s", wrong.Offset, wrong.Value)
	}
	if err != nil {
		return fault.Corruptf("JSON: %v", err)
	}
	return nil
}

// eachElement calls f with each element of a list in JSON, until f returns an error: elements that
// f refuses take no memory together. Errors: ErrCorrupt, the errors that f returns.
func eachElement[T any](text []byte, f func(element T) error) error {
	d := json.NewDecoder(bytes.NewReader(text))
	switch start, err := d.Token(); {
	case err != nil:
		return fault.Corruptf("JSON: %v", err)
	case start != json.Delim('['):
		return fault.Corruptf("JSON: not a list")
	}
	for d.More() {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return fault.Corruptf("JSON: %v", err)
		}
		var element T
		if err := unmarshal(raw, &element); err != nil {
			return inside(err, "at byte %d", d.InputOffset())
		}
		if err := f(element); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return fault.Corruptf("JSON: %v", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return fault.Corruptf("JSON: more text after the list")
	}
	return nil
}
