package arrowio

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/metadata"
)

// checkChunks returns an error unless each row group has a column chunk for each leaf of the
// schema, in the same order: the position of a chunk, its path, and its physical type must agree,
// since otherwise a column would get the values of another column. Errors: ErrCorrupt;
// ErrUnsupported for column chunks in other files.
func checkChunks(m *metadata.FileMetaData, s *parquetSchema) error {
	for i, group := range m.RowGroups {
		if len(group.Columns) != len(s.leaves) {
			return corruptf("row group %d has %d column chunks for %d columns", i, len(group.Columns), len(s.leaves))
		}
		for k, chunk := range group.Columns {
			leaf := s.leaves[k]
			switch {
			case chunk.GetFilePath() != "":
				return unsupportedf("row group %d: the values are in another file, %q", i, chunk.GetFilePath())
			case chunk.MetaData == nil:
				return in(leaf.path[0], -1, corruptf("row group %d: no metadata of the column chunk", i))
			case !slices.Equal(chunk.MetaData.PathInSchema, leaf.path):
				return in(leaf.path[0], -1,
					corruptf("row group %d: column chunk %d is one of column %q, want %q", i, k,
						strings.Join(chunk.MetaData.PathInSchema, "."), strings.Join(leaf.path, ".")))
			case parquet.Type(chunk.MetaData.Type) != leaf.physical:
				return in(leaf.path[0], -1,
					corruptf("row group %d: values of type %s in a column of type %s", i,
						physicalName(parquet.Type(chunk.MetaData.Type)), physicalName(leaf.physical)))
			}
		}
	}
	return nil
}

// physicalName returns the name of a physical type, which a damaged or a later file may have.
func physicalName(t parquet.Type) string {
	if t > parquet.Types.FixedLenByteArray {
		return "unknown"
	}
	return t.String()
}

// newestEncoding is the greatest number of an encoding of values in the format.
const newestEncoding = parquet.Encoding(9)

// unreadable returns ErrUnsupported if column chunks of a leaf use what is not known: then the
// column is refused, and the others can be read.
func unreadable(m *metadata.FileMetaData, leaf int) error {
	for i, group := range m.RowGroups {
		chunk := group.Columns[leaf].MetaData
		if err := checkCodec(compress.Compression(chunk.Codec)); err != nil {
			return fmt.Errorf("row group %d: %w", i, err)
		}
		for _, e := range chunk.Encodings {
			if e := parquet.Encoding(e); e < 0 || e > newestEncoding {
				return unsupportedf("row group %d: values in the unknown encoding %d", i, e)
			}
		}
	}
	return nil
}
