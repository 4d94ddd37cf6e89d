// Terms: tokenizes text as cpp/kernels/terms.hpp does. Words in any script, case-folded; n-grams of words and of
// characters; shapes. The browser's own Unicode tables are not used, since browsers differ.
const Terms = (() => {
  "use strict";

  const LONGEST = 128; // bytes of a word; a longer one is no word (its character n-grams count)
  const MOST_HOST = 100; // characters

  // Made by cpp/unicode.py from Unicode 14.0.0 and not to be changed by hand.
  // All characters in order, as runs: their length (if above 1) and kind. All numbers have base 36.
  const KINDS = `
    10SA2S'4S.S.SaD7SqL4SLSqL13S5A2SAL2SIASAS2LSL3S2LS3LSnLSvLScqL4ScLeS5L7SLSLhS39LS2L2S4LSL6SLS3LSLSkLS2bLS3vLA4tL
    S12L2SL6S15L4S3AS19LSLS2LS2LSL8SrL4S4LdS6I5SA2S2AbLSI3S1sLaD4S2uLS8LIAaLA6LaD3L2ALfSI1nL2S2tLeSaD18LA3SL2SL2A1aL
    iSsL4SbL5SoLS6LS2I6S22LI3lL2SaDSjLS8L2S2L2SmLS7LSL3S4L2S9L2S2L2S4L8SL4S2LS5L2SaD2L2A6L2ALSL2S3LS6L4S2L2SmLS7LS2L
    S2LS2L2SLS5L4S2L2S3L3SL7S4LSL7SaD6LbS3LS9LS3LSmLS7LS2LS5L2SaLS3LS3L2SLfS4L2SaDSA7S7LS3LS8L2S2L2SmLS7LS2LS5L2S9L2
    S2L2S3L7S3L4S2LS5L2SaDA7LaS2LS6L3S3LS4L3S2LSLS2L3S2L3S3L3ScL4S5L3S3LS4L2SL6SLeSaD3L8A5SdLS3LSnLSgL2S9LS3LS4L7S2L
    S3L2SL2S4L2SaD8S7LA4LS8LS3LSnLSaLS5L2S9LS3LS4L7S2L6S2LS4L2SaDS2LdSdLS3LS1fLS3LS5LA4SgL2SaD9LA6LS3LSiL3SoLS9LSL2S
    7L3SL4S6LSLS8L6SaD2S2LdS1mL4SAfLSaD13S2LSLS5LSoLSLSnL2S5LSLS6L2SaD2S4LwSL3AfSAS3A2L6AaDaLALALAL4SaLS10L4SkLSiLS1
    0LS8AL6AS2A5S4A13S1sLaD6S1sLaD4L2A12LSL5SL2S17LS99LS4L2S7LSLS4L2S15LS4L2SxLS4L2S7LSLS4L2SfLS1lLS4L2S1vL2S3L9SkL3
    SgLaA6S2eL2S6L3Sh8LAShLSqL5S23L3SbL7SmL9SmLbSkLcSdLS3LS2LcS2cL3SL3SA2L2SaD6SaLhS3LILaD6S2hL7S17L5S1yLaSvLScL4ScL
    4SA5SaDuL2S5LbS18L4SqL6SaDL3SyAsL4S1rLStL2SLaD6SaDdSL8SvL1dS25L3SaD7SaA9L9A3S1cLaD1mLcS1kL8SaD3S3LaD10L2S9L7S17L
    2S3LgS3LS13L5SeuL2S6L2S12L2S6L2S8LSLSLSLSvL2S1hLS7LSL3S3LS7L3S4L2S6L4SdL5S3LS7LeS5I9S'gS5I1dS5ISaI2L2S6L5SbL6SdL
    3SxAfSxLfS2AL4AL2AaLAL2AS5L6ALALALA4LAbL2A4L5S5LAS2ALA1mL2A9S5A2S4AS2AS2AS7ASvA2S2ASASvA7gS8A4SkA2S7A2S29ASuApS1
    4A6S1xApSbAlS1oL26AmL53AS9AS1iA8S33AS6wAeSuL18A1sS74Ae8S1cAlS2A6S13A2SwAS2xA6dL6A9L9SL2S12LSL5SL2S1kL7SLfSoL9S7L
    S7LS7LS7LS7LS7LS7LS7LSwL1bSLwS2A1aSqAS2hAcS5yAqScA8SA3LaS2AcSAfLS5L2A5LS2AS2eA2S2L2S3AS2iLS4L5S17LS2mLS2A4LaAwL1
    0AcSgLvASaLuA8LAfLwAaL13AfLlkwAwdL3S1jA9S1aL2S7hL3SgLaD2LkS1fLSaLS37L11S9L2S2vL2S1sL5S2LSLS5LoS1iL4AL3S6L4A6S1gL
    cS1yLaSaD6SoL3SLS3LaD10L2S10LcStL3S1tLeSLaD6SgLaD5LS1jL9SeL2SaD6SnL3A21LoS3L2SgL2S5LaS6L2S6L2S6L9S7LS7LS17LSeL6S
    3fLS2L2SaD6S8mcLcSnL4S1dL6isSa6A2S2yA12S7LcS5L5ScLSdLS5LSLS2LS2LS30LxSa3L2SgA1sL2S1iL7SAwScL4AgIgSgL1lSA6S5LS3rL
    2SI4SAbSaD7SqL6SqLbS2hL3S6L2S6L2S6L2S3L3S2A2S3ASA4S2AaS3I2A2ScLSqLSjLS2LSfL2SeLyS3fLcS19L3S9A1lLhA2L3ASdA3SA1bS1
    9AL3mStL3S1dLfSsL4S10L9SuL5S17L5SuL2S10L4S8LS5L16S4eL2SaD6S10L4S10L4S14L8S1gLcSbLSfLS7LS2LSbLSfLS7LS2L1vS8nL9SmL
    aS8LoS6LS16LS9L1xS6L2SLS18LS2L3SL2SnL2SvL2A12L8S9L1cSjLS2L5SxL4SqL1yS1kL4SkL2S1eLS2L5S8LS3LStL2S3L4SaLnSvLSwLwS8
    LAuL4S5LgS1iLaSmL2SrL5SqLnS7L28S21L1jS1fLdS1fL7S1aL8SaD86SvLS16LS2L3S2L26S14L8S11LrSmL16SsLkSnL9S1zLbSkLaD6L9S1o
    L2SI4SLaSI2SpL7SaD6S1hLSaD4S4L8S10L2SL9S1xL4S4LS2LaDLSL4SkLbSiLS11L6SL1tS7LSLS4LSfLSaL7S1nL5SaD6S4LS8L2S2L2SmLS7
    LS2LS5LSaL2S2L2S3L2SL6SL5S7L2S7L3S5L3vS23L5SaD4S4LuS1yLSL8SaD4mS1iL2S9LnS6LyS1tL3SLbSaD12S1lL7SaD1iSrL2SfL4SaD2L
    3SA7L55S1nL2tS1sLaD9LcS8L2SL2S8LS2LSuLS2L2S9LcSaD1yS8L2S1aL2S8LS2LrS1rL8SL8S22L3SLiS21L7bS9LS19LS9LfSaDjL5SuL2Sm
    LSeL21S7LS2LS18L3SLS2LS9L8SaD6S6LS2LS11LS2LS6L7SaD8mSnL55SLfSlLtAeSpmL2uS33LhS5gL218S2pLfStrLS9I347Sg7L6ntSftL7S
    vLSaD6S27LSaD6SuL2S5LbS1jL5S4A4LSAaSaDS7LSlL5SjLj4S2fL2xS23L4S1lL7ShL1sS2LS2LbS2LeS4qgL8SyeL16S9L6w7S4LS7LS2LSLA
    7xLA3L19S3AhS4L8Sb0L1s4S2zL5SdL3S9L7SaL2SA2LS4I3mkS1aL2SnL9S38A1oS6uAaS13A2S1oA5L3A6L8I8L2A7LuA4L1pAlS1uA3LA4aSk
    LcS2fA9SpL3rS2dLS1zLS2L2SL2S2L2S4LScLSLS7LS1tLS4L2S8LS7LSsLS4LS5LSL3S7LS9gL2SpLSpLSvLSpLSvLSpLSvLSpLSvLSpLS8L2S1
    eDe8A1jL4A1eL8ALeAL2AkS5LSfLuoSvL69S7LShL2S7LS2LS5L5xS19L3SeL2SaD4SLA8wSvLhS1cLaD5SAyoS7LS4LS2LSfLS5hL2SgL15S24L
    4SaDlzS1nLA3LA4L24S19LAfL5eS4LSrLS2LSL2SLSaLS4LSLSL6SL4SLSLSLS3LS2LSL2SLSLSLSLSLS2LSL2S4LS7LS4LS4LSLSaLShL5S3LS5
    LShL90S18A4S2sAcSfA2SfASfAS11AaSdL4hA1kStAdS18A4S9A7S2AeS6A4aS6zA5Sk8A5SgA3SdA3S38AcS2hA7ScA4SAfScA4S1kA8SaA6S14
    A8SuA2S2A26S9gAcSeA2S5A3S5A3S7A9StA3SbA5S6AaSaA6S8A8S7A9S43AS1jA11SaDsmSwyoAwS37dA7S66A2S4g2AeS5rlA2e7Sf2A15uS3t
    7AfcfqSIuS2oI3kS6oI47bkS
  `;
  // Folds to one character, as runs: first character, count, step, shift.
  const SHIFTS = `
    1t,q,1,w 51,1,1,lj 5c,n,1,w 60,7,1,w 74,o,2,1 8i,3,2,1 8p,8,2,1 96,n,2,1 ag,1,1,-3d ah,3,2,1 an,1,1,-7g
    ap,1,1,5u aq,2,2,1 au,1,1,5q av,1,1,1 ax,2,1,5p az,1,1,1 b2,1,1,27 b3,1,1,5m b4,1,1,5n b5,1,1,1 b7,1,1,5p
    b8,1,1,5r ba,1,1,5v bb,1,1,5t bc,1,1,1 bg,1,1,5v bh,1,1,5x bj,1,1,5y bk,3,2,1 bq,1,1,62 br,1,1,1 bt,1,1,62
    bw,1,1,1 by,1,1,62 bz,1,1,1 c1,2,1,61 c3,2,2,1 c7,1,1,63 c8,1,1,1 cc,1,1,1 ck,1,1,2 cl,1,1,1 cn,1,1,2 co,1,1,1
    cq,1,1,2 cr,9,2,1 da,9,2,1 dt,1,1,2 du,2,2,1 dy,1,1,-2p dz,1,1,-1k e0,k,2,1 f4,1,1,-3m f6,9,2,1 fu,1,1,8bv
    fv,1,1,1 fx,1,1,-4j fy,1,1,8bs g1,1,1,1 g3,1,1,-5f g4,1,1,1x g5,1,1,1z g6,5,2,1 n9,1,1,38 og,2,2,1 om,1,1,1
    ov,1,1,38 p2,1,1,12 p4,3,1,11 p8,1,1,1s pa,2,1,1r pd,h,1,w pv,9,1,w qq,1,1,1 r3,1,1,8 r4,1,1,-u r5,1,1,-p
    r9,1,1,-f ra,1,1,-m rc,c,2,1 s0,1,1,-1i s1,1,1,-1c s4,1,1,-1o s5,1,1,-1s s7,1,1,1 s9,1,1,-7 sa,1,1,1 sd,3,1,-3m
    sg,g,1,28 sw,w,1,w v4,h,2,1 wa,r,2,1 xs,1,1,f xt,7,2,1 y8,1c,2,1 10x,12,1,1c 3a8,12,1,5ls 3bb,1,1,5ls
    3bh,1,1,5ls 3y0,6,1,-8 5mo,1,1,-4su 5mp,1,1,-4st 5mq,1,1,-4sk 5mr,2,1,-4si 5mt,1,1,-4sj 5mu,1,1,-4sc
    5mv,1,1,-4ro 5mw,1,1,r7n 5n4,17,1,-2bk 5od,3,1,-2bk 5xc,23,2,1 61n,1,1,-1m 61s,1c,2,1 64o,8,1,-8 654,6,1,-8
    65k,8,1,-8 660,8,1,-8 66g,6,1,-8 66x,4,2,-8 67c,8,1,-8 69k,2,1,-8 69m,2,1,-22 69q,1,1,-5j9 6a0,4,1,-2e
    6ag,2,1,-8 6ai,2,1,-2s 6aw,2,1,-8 6ay,2,1,-34 6b0,1,1,-7 6bc,2,1,-3k 6be,2,1,-3i 6jq,1,1,-5st 6ju,1,1,-6gv
    6jv,1,1,-6di 6k2,1,1,s 6lc,g,1,g 6mb,1,1,1 792,q,1,q 8ow,1c,1,1c 8rk,1,1,1 8rm,1,1,-8af 8rn,1,1,-2xy
    8ro,1,1,-89z 8rr,3,2,1 8rx,1,1,-8bg 8ry,1,1,-8al 8rz,1,1,-8bj 8s0,1,1,-8bi 8s2,1,1,1 8s5,1,1,1 8se,2,1,-8cf
    8sg,1e,2,1 8vf,2,2,1 8vm,1,1,1 wu8,n,2,1 ww0,e,2,1 x0i,7,2,1 x0y,v,2,1 x2x,2,2,1 x31,1,1,-r9g x32,5,2,1
    x3f,1,1,1 x3h,1,1,-wmg x3k,2,2,1 x3q,a,2,1 x4a,1,1,-wn8 x4b,1,1,-wnj x4c,1,1,-wnf x4d,1,1,-wn5 x4e,1,1,-wn8
    x4g,1,1,-wlu x4h,1,1,-wmi x4i,1,1,-wlx x4j,1,1,ps x4k,8,2,1 x50,1,1,-1c x51,1,1,-wn7 x52,1,1,-raw x53,2,2,1
    x5c,1,1,1 x5i,2,2,1 x6d,1,1,1 xv4,28,1,-tzk 1ee9,q,1,w 1fcw,14,1,14 1fhs,10,1,14 1fn4,b,1,13 1fng,f,1,13
    1fnw,7,1,13 1fo4,2,1,13 1h1c,1f,1,1s 1jfk,w,1,w 20cg,w,1,w 2olc,y,1,y
  `;
  // Folds to several characters: the character, and its fold.
  const SPELLED = `
    67,37,37 8g,2x,lj 95,jg,32 ds,2y,lo pc,qh,lk,ld q8,qt,lk,ld 13b,12d,136 61i,2w,mp 61j,38,lk 61k,3b,lm 61l,3d,lm
    61m,2p,ji 61q,37,37 66o,qt,lv 66q,qt,lv,lc 66s,qt,lv,ld 66u,qt,lv,n6 680,64g,qh 681,64h,qh 682,64i,qh 683,64j,qh
    684,64k,qh 685,64l,qh 686,64m,qh 687,64n,qh 688,64g,qh 689,64h,qh 68a,64i,qh 68b,64j,qh 68c,64k,qh 68d,64l,qh
    68e,64m,qh 68f,64n,qh 68g,65c,qh 68h,65d,qh 68i,65e,qh 68j,65f,qh 68k,65g,qh 68l,65h,qh 68m,65i,qh 68n,65j,qh
    68o,65c,qh 68p,65d,qh 68q,65e,qh 68r,65f,qh 68s,65g,qh 68t,65h,qh 68u,65i,qh 68v,65j,qh 68w,674,qh 68x,675,qh
    68y,676,qh 68z,677,qh 690,678,qh 691,679,qh 692,67a,qh 693,67b,qh 694,674,qh 695,675,qh 696,676,qh 697,677,qh
    698,678,qh 699,679,qh 69a,67a,qh 69b,67b,qh 69e,67k,qh 69f,q9,qh 69g,q4,qh 69i,q9,n6 69j,q9,n6,qh 69o,q9,qh
    69u,67o,qh 69v,qf,qh 69w,q6,qh 69y,qf,n6 69z,qf,n6,qh 6a4,qf,qh 6aa,qh,lk,lc 6ab,qh,lk,ld 6ae,qh,n6 6af,qh,lk,n6
    6aq,qt,lk,lc 6ar,qt,lk,ld 6as,qp,lv 6au,qt,n6 6av,qt,lk,n6 6b6,67w,qh 6b7,qx,qh 6b8,r2,qh 6ba,qx,n6 6bb,qx,n6,qh
    6bg,qx,qh 1dkw,2u,2u 1dkx,2u,2x 1dky,2u,30 1dkz,2u,2u,2x 1dl0,2u,2u,30 1dl1,37,38 1dl2,37,38 1dlf,12s,12u
    1dlg,12s,12d 1dlh,12s,12j 1dli,132,12u 1dlj,12s,12l
  `;
  // Up to here made by cpp/unicode.py.

  // The kinds of characters, by the signs in KINDS. Half a surrogate pair is a separator, as an invalid byte of UTF-8 is
  // in the kernel.
  const SIGNS = "SLDAI'.";
  const [SEPARATOR, LETTER, DIGIT, ALONE, IGNORED, APOSTROPHE, POINT] = [...SIGNS].keys();

  const kinds = kindsOf(KINDS); // by code point
  const folds = foldsOf(SHIFTS, SPELLED); // case folding, by code point
  const encoder = new TextEncoder();

  function kindsOf(runs) {
    const kinds = new Uint8Array(0x110000);
    let from = 0;
    for (const [, count, sign] of runs.replace(/\s/g, "").matchAll(/([0-9a-z]*)([A-Z'.])/g)) {
      const to = from + (count ? parseInt(count, 36) : 1);
      kinds.fill(SIGNS.indexOf(sign), from, to);
      from = to;
    }
    return kinds;
  }

  function foldsOf(shifts, spelled) {
    const folds = new Map();
    for (const [first, count, step, shift] of numbersOf(shifts))
      for (let code = first; code < first + count * step; code += step)
        folds.set(code, String.fromCodePoint(code + shift));
    for (const [code, ...to] of numbersOf(spelled)) folds.set(code, String.fromCodePoint(...to));
    return folds;
  }

  function numbersOf(table) {
    return table
      .trim()
      .split(/\s+/)
      .map((row) => row.split(",").map((number) => parseInt(number, 36)));
  }

  function folded(code) {
    return folds.get(code) ?? String.fromCodePoint(code);
  }

  // The terms of a text, in order. `cut` is that of the family Text: [least, most] words and [least, most] characters of
  // n-grams (most 0: none), whether shapes count, and bits of a hash (0: terms are not hashed).
  function cut(text, [leastWords, mostWords, leastCharacters, mostCharacters, shapes, hashBits]) {
    const terms = [];
    const characters = [" "]; // so far, with a space around each word
    const words = []; // so far
    const add = (term, ofCharacters) =>
      terms.push(hashBits ? hashed(term, ofCharacters, hashBits) : ofCharacters ? `~${term}` : term);
    for (const word of wordsOf(text, shapes)) {
      if (mostCharacters)
        for (const character of `${word} `) {
          characters.push(character);
          for (const gram of lastGrams(characters, leastCharacters, mostCharacters, "")) if (gram !== " ") add(gram, true);
        }
      if (mostWords && !tooLong(word)) {
        words.push(word);
        for (const gram of lastGrams(words, leastWords, mostWords, " ")) add(gram, false);
      }
    }
    return terms;
  }

  // The n-grams that end with the last part, the shortest first.
  function lastGrams(parts, least, most, between) {
    const grams = [];
    for (let n = least; n <= Math.min(most, parts.length); n++) grams.push(parts.slice(-n).join(between));
    return grams;
  }

  // A UTF-16 unit takes at most three bytes in UTF-8, so few words need to be encoded.
  function tooLong(word) {
    return 3 * word.length > LONGEST && encoder.encode(word).length > LONGEST;
  }

  // Words, folded; also those that are too long.
  function* wordsOf(text, shapes) {
    const finished = shapes ? withZeros : (word) => word;
    let word = "";
    let last = SEPARATOR; // the kind of the word's last character
    for (let at = 0; at < text.length;) {
      const shape = shapes && !word ? shapeAt(text, at) : null;
      if (shape) {
        yield shape.name;
        yield shape.name + shape.host;
        at = shape.end;
        continue;
      }
      const code = text.codePointAt(at);
      const kind = kinds[code];
      at += lengthOf(code);
      if (kind === LETTER || kind === DIGIT) {
        word += folded(code);
        last = kind;
      } else if (joins(kind, last, text, at)) {
        word += kind === APOSTROPHE ? "'" : String.fromCodePoint(code);
      } else if (kind !== IGNORED) {
        if (word) yield finished(word);
        if (kind === ALONE) yield folded(code);
        word = "";
        last = SEPARATOR;
      }
    }
    if (word) yield finished(word);
  }

  // How many UTF-16 units a character takes.
  function lengthOf(code) {
    return code > 0xffff ? 2 : 1;
  }

  // An apostrophe between letters, or a point between digits, is part of the word.
  function joins(kind, last, text, next) {
    const among = kind === APOSTROPHE ? LETTER : kind === POINT ? DIGIT : null;
    return among === last && kindSeen(text, next) === among;
  }

  // The kind of the first visible character from `at` on.
  function kindSeen(text, at) {
    while (at < text.length) {
      const code = text.codePointAt(at);
      if (kinds[code] !== IGNORED) return kinds[code];
      at += lengthOf(code);
    }
    return SEPARATOR;
  }

  // Shapes ------------------------------------------------------------------------------------------------------------
  // The patterns have no flag u, which with i would match letters beyond ASCII.

  // A number by its shape.
  function withZeros(word) {
    return /^[0-9.,]+$/.test(word) && !tooLong(word) ? word.replace(/[1-9]/g, "0") : word;
  }

  // A term in words, where it is the shape of a number or an address (Text.called).
  function called(term, cut) {
    if (!cut[4] || term.startsWith("~")) return term;
    const words = term.split(" ");
    const shapes = words.map(shapeInWords);
    if (words.length === 1) return shapes[0] ?? term;
    return words.map((word, i) => (shapes[i] === null ? word : `[${shapes[i]}]`)).join(" ");
  }

  const ADDRESSES = [
    ["url:", "a link", "a link to"],
    ["address:", "a mail address", "a mail address at"],
  ];

  function shapeInWords(word) {
    for (const [mark, alone, to] of ADDRESSES) {
      if (word.startsWith(mark)) return word === mark ? alone : `${to} ${word.slice(mark.length)}`;
    }
    if (!/^[0.,]*0[0.,]*$/.test(word)) return null;
    return /^0+$/.test(word) ? `a number of ${word.length} digit${word.length > 1 ? "s" : ""}` : `a number like ${word}`;
  }

  // An address on the web up to the end of its host, or one of mail as a whole, if one begins here.
  function shapeAt(text, at) {
    const web = matchAt(/https?:\/\/|(?=www\.)/iy, text, at);
    if (web !== null) return shapeWith("url:", /\.+$/, /\.*(?![0-9a-z.-])/iy, text, at + web.length);
    const before = matchAt(/(?=\w)[\w.+%-]{1,63}@/y, text, at);
    if (before === null) return null;
    const shape = shapeWith("address:", /[.-]+$/, /[.-]*(?![0-9a-z.-])/iy, text, at + before.length);
    return shape && shape.host.includes(".") ? shape : null;
  }

  // A shape whose host begins here, without trailing marks, which may also go on beyond the longest host. One more
  // character than allowed is matched, to detect a host that is too long.
  function shapeWith(name, trailing, rest, text, at) {
    const taken = matchAt(/[0-9a-z.-]{0,101}/iy, text, at);
    const host = taken.replace(trailing, "");
    if (!host || host.length > MOST_HOST || matchAt(rest, text, at + taken.length) === null) return null;
    return { name, host: host.toLowerCase(), end: at + host.length };
  }

  // The match of a sticky pattern here, or null.
  function matchAt(pattern, text, at) {
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    return match && match[0];
  }

  // Hashes ------------------------------------------------------------------------------------------------------------

  // A hashed term: # and hexadecimal digits, from the highest bits of the hash of term_at in terms.hpp.
  function hashed(term, ofCharacters, bits) {
    const bytes = encoder.encode(term);
    const words = new DataView(new ArrayBuffer(Math.ceil(bytes.length / 8) * 8)); // zeros after the last byte
    new Uint8Array(words.buffer).set(bytes);
    const seed = (ofCharacters ? 0x9e3779b97f4a7c15n : 0xd6e8feb86659fd93n) + BigInt(bytes.length);
    let hash = mixed(seed ^ words.getBigUint64(0, true), 0xa0761d6478bd642fn);
    for (let i = 8; i < bytes.length; i += 8) hash = mixed(hash ^ words.getBigUint64(i, true), 0xe7037ed1a0b428dbn);
    const number = (hash ^ (hash >> 32n)) >> BigInt(64 - bits);
    return `#${number.toString(16).padStart(Math.ceil(bits / 4), "0")}`;
  }

  function mixed(a, b) {
    const product = a * b;
    return BigInt.asUintN(64, product ^ (product >> 64n));
  }

  return { cut, called };
})();
