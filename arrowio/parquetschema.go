package arrowio

import (
	"encoding/binary"
	"fmt"

	"github.com/apache/arrow-go/v18/parquet"
	pq "github.com/apache/arrow-go/v18/parquet/schema"
)

// The schema of a Parquet file is a list of elements in its footer, a tree in depth-first order. It
// is read here, and arrow-go is given a footer whose schema has only what determines how values are
// stored: it refuses a file with an annotation that it does not know or that does not fit, and
// takes a group without fields for a column, after which all other columns get the values of
// others.
//
//	FileMetaData   1 version; 2 schema: list of SchemaElement; others as they are
//	SchemaElement  1 type; 2 type_length; 3 repetition_type; 4 name; 5 num_children;
//	               6 converted_type; 7 scale; 8 precision; 9 field_id; 10 logicalType
//
// Source: https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift

// Numbers of fields.
const (
	footerVersion = 1
	footerSchema  = 2

	elementType        = 1
	elementLength      = 2
	elementRepetition  = 3
	elementName        = 4
	elementChildren    = 5
	elementConverted   = 6
	elementScale       = 7
	elementPrecision   = 8
	elementLogicalType = 10
)

const (
	newestFooter = 2        // the version of the newest format of footers
	maxNesting   = 64       // levels of groups
	maxPaths     = 64 << 20 // bytes of the paths of all columns
)

// element is an element of the schema.
type element struct {
	name       []byte
	physical   parquet.Type // noType: it is a group
	length     int32
	repetition parquet.Repetition
	children   int32
	converted  pq.ConvertedType
	decimal    pq.DecimalMetadata
	logical    []byte // the union; nil if absent
}

const noType = parquet.Type(-1)

// parquetSchema is the schema of a Parquet file.
type parquetSchema struct {
	fields []*parquetField // at the top level
	leaves []*parquetLeaf  // in the order of column chunks
}

// parquetField is a column or a group of columns.
type parquetField struct {
	node     pq.Node
	err      error  // why no column can have its values; of fields inside of it, too
	note     string // what is not obvious about the type of the values
	children []*parquetField
	leaf     *parquetLeaf // nil: it is a group
}

// parquetLeaf is a field with values.
type parquetLeaf struct {
	index    int
	path     []string
	physical parquet.Type
}

// readFooter returns the schema in a footer that checkThrift has accepted, and the footer for
// arrow-go.
func readFooter(footer []byte) (s *parquetSchema, rewritten []byte, err error) {
	malformed := corruptf("malformed metadata")
	fields, _, ok := thriftFields(footer)
	if !ok {
		return nil, nil, malformed
	}
	var out thriftStructWriter
	for i := range fields {
		f := &fields[i]
		switch f.id {
		case footerVersion:
			if version, ok := f.integer(); !ok {
				return nil, nil, malformed
			} else if version > newestFooter {
				return nil, nil, unsupportedf("a Parquet file of version %d, want at most %d", version, newestFooter)
			}
		case footerSchema:
			elements, ok := thriftElements(f)
			if s != nil || !ok || len(elements) == 0 {
				return nil, nil, malformed
			}
			if s, f.value, err = readSchema(elements); err != nil {
				return nil, nil, err
			}
		}
		out.field(*f)
	}
	if s == nil {
		return nil, nil, malformed
	}
	return s, out.end(), nil
}

// readElement returns an element of a schema.
func readElement(b []byte) (e element, err error) {
	e = element{physical: noType, converted: pq.ConvertedTypes.None}
	fields, _, ok := thriftFields(b)
	for i := 0; i < len(fields) && ok; i++ {
		f := &fields[i]
		var n int32
		switch f.id {
		case elementName:
			e.name, ok = f.text()
			continue
		case elementLogicalType:
			e.logical, ok = f.value, f.kind == thriftStruct
			continue
		case elementType, elementLength, elementRepetition, elementChildren, elementConverted,
			elementScale, elementPrecision:
			n, ok = f.integer()
		}
		switch f.id {
		case elementType:
			e.physical, ok = parquet.Type(n), ok && n >= 0
		case elementLength:
			e.length = n
		case elementRepetition:
			e.repetition, ok = parquet.Repetition(n), ok && n >= 0 && n <= int32(parquet.Repetitions.Repeated)
		case elementChildren:
			e.children, ok = n, ok && n >= 0
		case elementConverted:
			e.converted = pq.ConvertedType(n)
		case elementScale:
			e.decimal.Scale = n
		case elementPrecision:
			e.decimal.Precision = n
		}
	}
	if !ok {
		return e, corruptf("malformed schema")
	}
	if e.children > 0 {
		e.physical = noType
	}
	return e, nil
}

// schemaReader reads the elements of a schema.
type schemaReader struct {
	left  [][]byte
	s     *parquetSchema
	path  []string // of the open groups
	paths int      // bytes of the paths of all leaves
	out   []byte   // the elements for arrow-go
	count int      // of them
}

// readSchema returns a schema, and the list of elements for arrow-go.
func readSchema(elements [][]byte) (*parquetSchema, []byte, error) {
	r := &schemaReader{left: elements[1:], s: &parquetSchema{}}
	root, err := readElement(elements[0])
	if err != nil {
		return nil, nil, err
	}
	fields, err := r.children(int(root.children))
	if err == nil && len(r.left) > 0 {
		err = corruptf("the schema has %d elements too many", len(r.left))
	}
	if err != nil {
		return nil, nil, err
	}
	r.s.fields = fields
	body := r.out
	r.out = nil
	r.group(&root, r.present(fields))
	list := append([]byte{0xf<<4 | thriftStruct}, binary.AppendUvarint(nil, uint64(r.count))...)
	return r.s, append(append(list, r.out...), body...), nil
}

// present returns the number of fields that arrow-go is given: those with a leaf.
func (r *schemaReader) present(fields []*parquetField) (n int) {
	for _, f := range fields {
		if f.hasLeaf() {
			n++
		}
	}
	return n
}

func (f *parquetField) hasLeaf() bool {
	if f.leaf != nil {
		return true
	}
	for _, c := range f.children {
		if c.hasLeaf() {
			return true
		}
	}
	return false
}

// children reads n fields with all that is in them.
func (r *schemaReader) children(n int) ([]*parquetField, error) {
	if len(r.path) > maxNesting {
		return nil, unsupportedf("groups that are nested more than %d levels deep", maxNesting)
	}
	if n > len(r.left) {
		return nil, corruptf("the schema ends before its elements")
	}
	fields := make([]*parquetField, n)
	for i := range fields {
		if len(r.left) == 0 {
			return nil, corruptf("the schema ends before its elements")
		}
		e, err := readElement(r.left[0])
		if err != nil {
			return nil, err
		}
		r.left = r.left[1:]
		read := r.readLeaf
		if e.physical == noType {
			read = r.readGroup
		}
		if fields[i], err = read(&e); err != nil {
			return nil, err
		}
	}
	return fields, nil
}

// readGroup reads the fields of a group.
func (r *schemaReader) readGroup(e *element) (*parquetField, error) {
	r.path = append(r.path, string(e.name))
	before := r.out
	r.out = nil
	fields, err := r.children(int(e.children))
	if err != nil {
		return nil, err
	}
	r.path = r.path[:len(r.path)-1]
	inner := r.out
	r.out = before
	if n := r.present(fields); n > 0 {
		r.group(e, n)
		r.out = append(r.out, inner...)
	}
	f := &parquetField{children: fields}
	var nodes pq.FieldList
	for _, c := range fields {
		nodes = append(nodes, c.node)
	}
	f.node, err = groupNode(e, nodes)
	return f, err
}

// group appends an element for a group of n fields.
func (r *schemaReader) group(e *element, n int) {
	w := thriftStructWriter{b: r.out}
	w.i32(elementRepetition, int32(e.repetition))
	w.field(nameField(e))
	w.i32(elementChildren, int32(n))
	r.out = w.end()
	r.count++
}

func nameField(e *element) thriftField {
	return thriftField{elementName, thriftString, append(binary.AppendUvarint(nil, uint64(len(e.name))), e.name...)}
}

// readLeaf returns the field with the values of an element.
func (r *schemaReader) readLeaf(e *element) (*parquetField, error) {
	leaf := &parquetLeaf{index: len(r.s.leaves), physical: e.physical}
	leaf.path = append(append(leaf.path, r.path...), string(e.name))
	for _, name := range leaf.path {
		r.paths += len(name)
	}
	if r.paths > maxPaths {
		return nil, unsupportedf("names of columns of more than %d bytes", maxPaths)
	}
	r.s.leaves = append(r.s.leaves, leaf)
	f := &parquetField{leaf: leaf}
	stored, length := e.physical, int(e.length)
	switch {
	case stored > parquet.Types.FixedLenByteArray:
		f.err = unsupportedf("values of the physical type %d", int(stored))
		stored = parquet.Types.ByteArray // no value is read
	case stored == parquet.Types.FixedLenByteArray && length <= 0:
		f.err = unsupportedf("byte strings with a fixed length of %d", length)
		length = 1
	}
	annotation, note, err := e.annotation(stored, length)
	if f.err == nil {
		f.err = err
	}
	f.note = note
	// arrow-go checks that the type of a node fits, annotation says whether it does.
	if f.node, err = pq.NewPrimitiveNodeLogical(string(e.name), e.repetition, annotation,
		stored, length, -1); err != nil {
		f.err = unsupportedf("%s with values of type %s", annotation, stored)
		if f.node, err = pq.NewPrimitiveNodeLogical(string(e.name), e.repetition, pq.NoLogicalType{},
			stored, length, -1); err != nil {
			return nil, corruptf("column %q: %v", e.name, err)
		}
	}
	w := thriftStructWriter{b: r.out}
	w.i32(elementType, int32(stored))
	if stored == parquet.Types.FixedLenByteArray {
		w.i32(elementLength, int32(length))
	}
	w.i32(elementRepetition, int32(e.repetition))
	w.field(nameField(e))
	r.out = w.end()
	r.count++
	return f, nil
}

// groupNode returns the node of a group. Of the annotations of groups, only LIST and MAP matter.
func groupNode(e *element, fields pq.FieldList) (pq.Node, error) {
	annotation, ok := e.union()
	if !ok {
		return nil, corruptf("malformed schema")
	}
	var kind pq.LogicalType
	switch {
	case annotation.id == annotationList, e.logical == nil && e.converted == pq.ConvertedTypes.List:
		kind = pq.ListLogicalType{}
	case annotation.id == annotationMap,
		e.logical == nil && (e.converted == pq.ConvertedTypes.Map || e.converted == pq.ConvertedTypes.MapKeyValue):
		kind = pq.MapLogicalType{}
	default:
		return pq.NewGroupNode(string(e.name), e.repetition, fields, -1)
	}
	return pq.NewGroupNodeLogical(string(e.name), e.repetition, fields, kind, -1)
}

// Members of the union LogicalType.
const (
	annotationString    = 1
	annotationMap       = 2
	annotationList      = 3
	annotationEnum      = 4
	annotationDecimal   = 5
	annotationDate      = 6
	annotationTime      = 7
	annotationTimestamp = 8
	annotationInteger   = 10
	annotationUnknown   = 11
	annotationJSON      = 12
	annotationBSON      = 13
	annotationUUID      = 14
	annotationFloat16   = 15
	annotationVariant   = 16
	annotationGeometry  = 17
	annotationGeography = 18
)

// plainAnnotations are those without parameters.
var plainAnnotations = map[int16]pq.LogicalType{
	annotationString: pq.StringLogicalType{}, annotationEnum: pq.EnumLogicalType{},
	annotationDate:    pq.DateLogicalType{},
	annotationUnknown: pq.NullLogicalType{}, annotationJSON: pq.JSONLogicalType{}, annotationBSON: pq.BSONLogicalType{},
	annotationUUID: pq.UUIDLogicalType{}, annotationFloat16: pq.Float16LogicalType{},
}

// union returns the member of the annotation of an element; its number is 0 if the element has no
// annotation. It returns false if the annotation is malformed.
func (e *element) union() (thriftField, bool) {
	if e.logical == nil {
		return thriftField{}, true
	}
	fields, _, ok := thriftFields(e.logical)
	if !ok || len(fields) > 1 || len(fields) == 1 && fields[0].kind != thriftStruct {
		return thriftField{}, false
	}
	if len(fields) == 0 { // arrow-go and others do not write members that they do not know
		return thriftField{}, true
	}
	return fields[0], true
}

// unknownAnnotation is the note of a column whose annotation is not used.
const unknownAnnotation = "a logical type that is not known is ignored"

// annotation returns the annotation of an element with values of a physical type, and a note about
// it. Errors: ErrUnsupported for one whose values no column can have.
func (e *element) annotation(physical parquet.Type, length int) (t pq.LogicalType, note string, err error) {
	t = pq.NoLogicalType{}
	member, ok := e.union()
	if !ok {
		return t, "", corruptf("malformed schema")
	}
	// parquet-java 1.12 and others write that an INTERVAL is unknown, which only its converted type
	// tells from a column without values.
	interval := member.id == annotationUnknown && e.converted == pq.ConvertedTypes.Interval
	if plain := plainAnnotations[member.id]; plain != nil && !interval {
		return plain, "", nil
	}
	switch member.id {
	case annotationGeometry, annotationGeography: // well-known binary
		return t, "", nil
	case annotationDecimal, annotationTime, annotationTimestamp, annotationInteger:
		fields, _, ok := thriftFields(member.value)
		if !ok {
			return t, "", corruptf("malformed schema")
		}
		if t = withParameters(member.id, fields); t != nil {
			return t, "", nil
		}
		t = pq.NoLogicalType{}
	}
	if e.converted != pq.ConvertedTypes.None {
		if t, err := e.convertedType(physical, length); t != nil || err != nil {
			return t, "", err
		}
	}
	if e.logical != nil && member.id != 0 || e.converted != pq.ConvertedTypes.None {
		note = unknownAnnotation
	}
	return t, note, nil
}

// withParameters returns an annotation with the parameters in fields, nil if they are not known.
func withParameters(id int16, fields []thriftField) pq.LogicalType {
	var numbers [3]int32
	flag, unit := false, pq.TimeUnitUnknown
	for i := range fields {
		f := &fields[i]
		switch f.kind {
		case thriftTrue:
			flag = true
		case thriftStruct:
			if units, _, ok := thriftFields(f.value); ok && len(units) == 1 && units[0].id >= 1 && units[0].id <= 3 {
				unit = pq.TimeUnitType(units[0].id - 1) // millis, micros, nanos
			}
		default:
			if n, ok := f.integer(); ok && f.id > 0 && int(f.id) < len(numbers) {
				numbers[f.id] = n
			}
		}
	}
	switch id {
	case annotationDecimal:
		return decimalAnnotation(numbers[2], numbers[1])
	case annotationTime:
		if unit != pq.TimeUnitUnknown {
			return pq.NewTimeLogicalType(flag, unit)
		}
	case annotationTimestamp:
		if unit != pq.TimeUnitUnknown {
			return pq.NewTimestampLogicalType(flag, unit)
		}
	case annotationInteger:
		switch numbers[1] {
		case 8, 16, 32, 64:
			return pq.NewIntLogicalType(int8(numbers[1]), flag)
		}
	}
	return nil
}

// invalidDecimal is an annotation of decimals with a precision or a scale that there is not.
type invalidDecimal struct {
	pq.NoLogicalType
	precision, scale int32
}

func (d invalidDecimal) String() string { return fmt.Sprintf("decimal(%d,%d)", d.precision, d.scale) }

func (invalidDecimal) IsApplicable(parquet.Type, int32) bool { return false }

func decimalAnnotation(precision, scale int32) pq.LogicalType {
	if precision < 1 || scale < 0 || scale > precision {
		return invalidDecimal{precision: precision, scale: scale}
	}
	return pq.NewDecimalLogicalType(precision, scale)
}

// convertedType returns the annotation that a converted type means, nil if it is not known.
func (e *element) convertedType(physical parquet.Type, length int) (pq.LogicalType, error) {
	switch c := e.converted; c {
	case pq.ConvertedTypes.Decimal:
		return decimalAnnotation(e.decimal.Precision, e.decimal.Scale), nil
	case pq.ConvertedTypes.Interval:
		return pq.NoLogicalType{}, unsupportedf("a column cannot have the type INTERVAL")
	case pq.ConvertedTypes.Map, pq.ConvertedTypes.MapKeyValue, pq.ConvertedTypes.List:
		return nil, nil
	default:
		if c < 0 || c > pq.ConvertedTypes.Interval {
			return nil, nil
		}
		return c.ToLogicalType(pq.DecimalMetadata{}), nil
	}
}
