// The two spellings of an internationalised domain or address: that of machines, and beside it that of people.

/** Both, or the one there is. */
export const spellings = (ascii, unicode) => (unicode ? `${unicode} (${ascii})` : ascii);
