package carbondata

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/oribi-db/oribi/carbondata/internal/codec"
	"github.com/oribi-db/oribi/carbondata/internal/thrift"
)

// fileSchema is how the columns of a Writer are in its files.
type fileSchema struct {
	columns    []*columnWriter // in the user's order
	chunks     []*columnWriter // with all their children, in the order of the file
	dimensions int             // how many of the chunks are dimensions
	sort       []*columnWriter // the sort columns
	texts      []*columnWriter // of columns: those whose values have no fixed size
	rowMemory  int             // of the columns, see columnWriter.rowMemory
}

// newFileSchema checks the columns and the options, and orders the columns as the SDK does: sort
// columns, other dimensions, VARCHAR, those with children, measures. Source: carbondata spec §14.1.
func newFileSchema(columns []Column, o *WriterOptions, c *codec.Compressor) (*fileSchema, error) {
	if len(columns) == 0 {
		return nil, fmt.Errorf("no columns")
	}
	s := new(fileSchema)
	names := map[string]string{}
	for i, column := range columns {
		w, err := newColumnWriter(column, false, c, 0)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", column.Name, err)
		}
		if other, ok := names[foldCase(w.Name)]; ok {
			return nil, twice("column", other, column.Name)
		}
		names[foldCase(w.Name)] = column.Name
		w.Ordinal = i
		s.columns = append(s.columns, w)
		if s.rowMemory += w.rowMemory(); w.form == formStrings || len(w.children) > 0 {
			s.texts = append(s.texts, w)
		}
	}
	if err := s.setSort(o); err != nil {
		return nil, err
	}
	s.arrange()
	if !o.NoLocalDictionary {
		for _, w := range s.chunks {
			if w.form == formStrings && w.Type != Binary {
				prefix := lengthLen
				if w.Type == Varchar && !w.nested {
					prefix = longLengthLen
				}
				w.dict = newDictionaryWriter(o.DictionaryThreshold, prefix)
			}
		}
	}
	return s, nil
}

// twice is the error of two columns or fields with one name.
func twice(what, name, other string) error {
	if name == other {
		return fmt.Errorf("%s %q appears twice", what, name)
	}
	return fmt.Errorf("%ss %q and %q: the names differ only in case, and CarbonData's are in lower case", what, name,
		other)
}

// lowerCase returns a name as CarbonData stores it.
func lowerCase(name string) string { return strings.ToLower(name) }

// foldCase returns what names have in common that differ only in case.
func foldCase(name string) string { return strings.ToLower(strings.ToUpper(name)) }

// newColumnWriter returns the writer of a column and of its children, which have no paths yet. pair
// is that the column is the STRUCT of a MAP.
func newColumnWriter(column Column, pair bool, c *codec.Compressor, depth int) (*columnWriter, error) {
	w := &columnWriter{Column: column, compressor: c}
	w.Name, w.nested, w.Sort, w.Default = lowerCase(column.Name), depth > 0, false, nil
	if err := checkColumn(column, depth); err != nil {
		return nil, err
	}
	w.Children = nil
	for _, child := range column.Children {
		cw, err := newColumnWriter(child, column.Type == Map, c, depth+1)
		if err != nil {
			return nil, inside(err, "%s", child.Name)
		}
		if column.Type == Struct && !pair {
			if !isFieldName(cw.Name) {
				return nil, fmt.Errorf("field %q: %s", child.Name, nameRule)
			}
			if i := slices.IndexFunc(w.children, func(o *columnWriter) bool {
				return foldCase(o.Name) == foldCase(cw.Name)
			}); i >= 0 {
				return nil, twice("field", column.Children[i].Name, child.Name)
			}
		}
		w.children = append(w.children, cw)
		w.Children = append(w.Children, cw.Column)
	}
	w.choose()
	return w, nil
}

// nameRule is the rule that isFieldName checks, for errors.
const nameRule = "the name must be 1 to 1023 bytes of UTF-8 without a point or U+0000"

// isFieldName reports whether a column or a field may have the name. A point separates names of
// parents.
func isFieldName(name string) bool {
	return name != "" && utf8.ValidString(name) && !strings.ContainsAny(name, ".\x00") && len(name) < 1<<10
}

// checkColumn reports what is wrong with a column, without regard to others.
func checkColumn(c Column, depth int) error {
	_, known := typeNames[c.Type]
	pair := c.Type == Map && len(c.Children) == 1
	switch {
	case depth == 0 && !isFieldName(c.Name):
		return errors.New(nameRule)
	case !known:
		return fmt.Errorf("type %d", int(c.Type))
	case depth > maxNesting:
		return fmt.Errorf("more than %d levels of nesting", maxNesting)
	case c.Type == Decimal && (c.Precision < 1 || c.Precision > maxPrecision || c.Scale < 0 || c.Scale > c.Precision):
		return fmt.Errorf("DECIMAL(%d,%d), want a precision of 1 to %d, and a scale up to it",
			c.Precision, c.Scale, maxPrecision)
	case c.Type == Struct && len(c.Children) == 0,
		(c.Type == Array || c.Type == Map) && len(c.Children) != 1,
		c.Type != Struct && c.Type != Array && c.Type != Map && len(c.Children) != 0:
		return fmt.Errorf("%v with %d children", c.Type, len(c.Children))
	case pair && (c.Children[0].Type != Struct || len(c.Children[0].Children) != 2):
		return fmt.Errorf("a MAP whose child is not a STRUCT of key and value")
	}
	return nil
}

// maxNesting is the most levels of columns below one.
const maxNesting = thrift.MaxDepth

// choose sets how the values are stored.
func (w *columnWriter) choose() {
	w.kind, w.prefix = kindMeasure, lengthLen
	w.dimension = true
	switch {
	case w.Type == Array || w.Type == Map:
		w.form, w.kind = formElements, kindArray
	case w.Type == Struct:
		w.form, w.kind = formFields, kindStruct
	case w.Type == Date && w.nested:
		w.form, w.prefix = formNestedDates, longLengthLen
	case w.Type == Decimal && w.nested:
		w.form, w.prefix = formNestedDecimals, longLengthLen
	case w.Type == String || w.Type == Varchar || w.Type == Binary:
		w.form = formStrings
		if w.Type != String || w.nested {
			w.prefix = longLengthLen
		}
	case w.Type == Date:
		w.form = formDates
	case w.Type == Timestamp:
		w.form, w.kind = formNumbers, kindPlainValue
	default:
		w.form = formNumbers
		w.dimension = w.nested
	}
	if w.nested && w.kind != kindArray && w.kind != kindStruct {
		w.kind = kindChild
	}
}

// setSort marks the sort columns and those with an inverted index.
func (s *fileSchema) setSort(o *WriterOptions) error {
	find := func(name string) (*columnWriter, error) {
		i := slices.IndexFunc(s.columns, func(w *columnWriter) bool { return w.Name == lowerCase(name) })
		if i < 0 {
			return nil, fmt.Errorf("sort column %q: %w", name, ErrNoColumn)
		}
		return s.columns[i], nil
	}
	for _, name := range o.SortColumns {
		w, err := find(name)
		if err != nil {
			return err
		}
		if w.Sort {
			return fmt.Errorf("sort column %q twice", name)
		}
		if !w.Type.Sortable() {
			return fmt.Errorf("sort column %q: CarbonData does not sort by %s", name, w.TypeName())
		}
		w.Sort, w.dimension = true, true
		if w.form == formNumbers {
			w.kind = kindPlainValue
		}
		s.sort = append(s.sort, w)
	}
	for _, name := range o.InvertedIndex {
		w, err := find(name)
		if err != nil {
			return err
		}
		if !w.Sort || w.Type != String {
			return fmt.Errorf("inverted index of column %q: want a sort column of type STRING", name)
		}
		w.inverted = true
	}
	return nil
}

// Sortable reports whether a column of type t may be a sort column. CarbonData's own filters of
// sort columns fail with BYTE.
func (t Type) Sortable() bool {
	switch t {
	case String, Date, Timestamp, Boolean, Short, Int, Long:
		return true
	}
	return false
}

// arrange puts the columns with their children in the order of the file, and names them.
func (s *fileSchema) arrange() {
	group := func(w *columnWriter) int {
		switch {
		case !w.dimension:
			return 4
		case len(w.children) > 0:
			return 3
		case w.Type == Varchar:
			return 2
		}
		return 1
	}
	order := slices.Clone(s.sort)
	for g := 1; g <= 4; g++ {
		for _, w := range s.columns {
			if !w.Sort && group(w) == g {
				order = append(order, w)
			}
		}
	}
	// The names of elements are counted in the user's order, the names of the parents of children
	// first.
	number, ids := 0, map[string]int{}
	for _, w := range s.columns {
		w.name(w.Name, w.Name, &number, ids)
	}
	for _, w := range order {
		w.separate(ids)
		w.flatten(s)
		if w.dimension {
			s.dimensions = len(s.chunks)
		}
	}
}

// name sets path and ID of a column and its children, and counts the IDs. Source: carbondata spec
// §7.8.
func (w *columnWriter) name(path, id string, number *int, ids map[string]int) {
	w.path, w.ID = path, id
	ids[id]++
	for i, child := range w.children {
		name := child.Name
		switch {
		case w.Type != Struct:
			name = "val" + strconv.Itoa(*number)
			if *number++; w.Type == Array && !w.nested {
				name = w.Name
			}
		case w.pairOf != "":
			name = w.pairOf + []string{".key", ".value"}[i]
		}
		child.Name = name
		if w.Type == Map {
			child.pairOf = w.Name
		}
		child.name(path+"."+name, name, number, ids)
	}
}

// separate makes the path the ID of each child whose ID another column has too: the SDK would
// return the values of one column for the other. The element of an array has the ID of the array,
// as in files of the SDK.
func (w *columnWriter) separate(ids map[string]int) {
	for _, child := range w.children {
		if ids[child.ID] > 1 && (w.Type != Array || w.nested) {
			child.ID = child.path
		}
		child.separate(ids)
	}
}

// flatten appends the column and its children to s.
func (w *columnWriter) flatten(s *fileSchema) {
	s.chunks = append(s.chunks, w)
	for _, child := range w.children {
		child.flatten(s)
	}
}

// appendColumns writes the ColumnSchemas of a file as a field of the open message.
func (s *fileSchema) appendColumns(w *thrift.Writer, id int) {
	w.List(id, thrift.Struct, len(s.chunks))
	for _, c := range s.chunks {
		var encodings []encoding
		if c.Type == Date && !c.nested {
			encodings = []encoding{encDirectDictionary, encDictionary}
		}
		if c.inverted {
			encodings = append(encodings, encInvertedIndex)
		}
		scale, precision, ordinal := -1, -1, c.Ordinal
		if c.Type == Decimal {
			scale, precision = c.Scale, c.Precision
		}
		if c.nested {
			ordinal = -1
		}
		w.Open()
		w.I32(columnType, int(c.Type))
		w.Text(columnName, c.path)
		w.Text(columnID, c.ID)
		w.Bool(columnColumnar, true)
		writeEncodings(w, columnEncoders, encodings)
		w.Bool(columnDimension, c.dimension)
		w.I32(columnGroup, -1)
		w.I32(columnScale, scale)
		w.I32(columnPrecision, precision)
		w.I32(columnChildren, len(c.children))
		w.Text(columnAggregate, "")
		if c.Sort {
			w.Properties(columnProperties, map[string]string{"sort_columns": "true"})
		}
		w.Bool(columnInvisible, false)
		w.Text(columnReference, c.ID)
		w.I32(columnOrdinal, ordinal)
		w.End()
	}
}
