package keydir

// golden is the dump of 18 rows; 17 of them have the same hash.
const golden = `key directory: 200 bytes, 2 buckets
  0       6f 72 69 62 69 6b 65 79  magic
  8       01 00 00 00              version
  12      00 00 00 00              must-know flags
  16      00 00 00 00              may-ignore flags
  20      01                       hash: CityHash64
  21      00                       rows in a group: 1
  22      00 00                    zeros
  24      12 00 00 00 00 00 00 00  rows: 18
  32      07 00 00 00 00 00 00 00  block of the bloom file: 7
  40      02 00 00 00 00 00 00 00  buckets: 2
  48      00 00 00 00 00 00 00 00  zeros
  56      00 00 00 00 00 00 00 00
  bucket 0
    64      01 00 f0 de              tag def, group 1
    68      02 00 f0 de              tag def, group 2
    72      03 00 f0 de              tag def, group 3
    76      04 00 f0 de              tag def, group 4
    80      05 00 f0 de              tag def, group 5
    84      06 00 f0 de              tag def, group 6
    88      07 00 f0 de              tag def, group 7
    92      08 00 f0 de              tag def, group 8
    96      09 00 f0 de              tag def, group 9
    100     0a 00 f0 de              tag def, group 10
    104     0b 00 f0 de              tag def, group 11
    108     0c 00 f0 de              tag def, group 12
    112     0d 00 f0 de              tag def, group 13
    116     0e 00 f0 de              tag def, group 14
    120     10 00 f0 de              tag def, group 16
    124     0f 00 f0 de              tag def, group 15
    128                              more in the next bucket
  bucket 1
    128     00 00 c0 ab              tag abc, group 0
    132     11 00 f0 de              tag def, group 17
    136     00 00 00 00 00 00 00 00  empty
    144     00 00 00 00 00 00 00 00
    152     00 00 00 00 00 00 00 00
    160     00 00 00 00 00 00 00 00
    168     00 00 00 00 00 00 00 00
    176     00 00 00 00 00 00 00 00
    184     00 00 00 00 00 00 00 00
  192     e4 df b9 d6 75 d0 8d 12  checksum
`
