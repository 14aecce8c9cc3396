package carbondata

// encoding is one transformation of a page's values, such as run lengths. Source: carbondata spec
// §5.
type encoding int

const (
	encDictionary       encoding = 0  // file format: never change
	encRLE              encoding = 2  // file format: never change
	encInvertedIndex    encoding = 3  // file format: never change
	encDirectDictionary encoding = 5  // file format: never change
	encDirectCompress   encoding = 6  // file format: never change
	encAdaptive         encoding = 7  // file format: never change
	encAdaptiveDelta    encoding = 8  // file format: never change
	encAdaptiveFloat    encoding = 11 // file format: never change
	encAdaptiveFloatDel encoding = 13 // file format: never change
	encVarchar          encoding = 14 // file format: never change
	encIntLengthChild   encoding = 15 // file format: never change
)
